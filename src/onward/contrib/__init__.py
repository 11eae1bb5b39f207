"""Parts made for one customer's application or file format.

They come in by the entry points that outsiders would use; no other room may import them.
"""
