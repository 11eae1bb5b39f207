"""Alerts as rows: rules and channels, the outbox of notices, and runs as rules see them.

When a rule fires is decided in onward.model; sending is in onward.operations.
"""
