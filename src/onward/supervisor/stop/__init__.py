"""Stopping in time: when to ask, how long to wait, and where the limit lies now."""
