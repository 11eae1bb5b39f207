"""Alerts as rows: rules and channels, the outbox of notices, and runs as rules see them.

Not here: when a rule fires (model/alerts), sending (operations/alerts).
"""
