"""Sending alerts: the service that asks the rules, webhooks, mail, the secrets of channels.

Rules live in onward.model, their store in onward.tracker.
"""
