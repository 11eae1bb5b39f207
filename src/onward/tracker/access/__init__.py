"""Tokens: format, rights, and how they are kept. Only digests are stored.

Not here: who is let in (api/access).
"""
