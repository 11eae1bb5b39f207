"""Stopping in time: when to ask, how long to wait, and when the time limit is.

Not here: how ranks agree on a step (supervisor/ranks).
"""
