"""Sending alerts: the service that evaluates the rules, webhooks, mail, the secrets of channels.

Not here: the rules (model/alerts), their store (tracker/alerts).
"""
