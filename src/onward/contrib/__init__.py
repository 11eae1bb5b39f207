"""Parts made for one customer's application or file format, registered through the same entry points that plugins use.

Not here: anything that others need. No other room may import this one.
"""
