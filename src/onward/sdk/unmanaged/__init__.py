"""Runs that nobody submitted: their folder, and how their process ended.

Not here: anything that needs a supervisor.
"""
