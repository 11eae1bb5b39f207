"""Tokens: what they look like, what they may do, and how they are kept.

Only digests are stored; whom a server lets in is decided in onward.api.access.
"""
