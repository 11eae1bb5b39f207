"""Processes of a leg: the guard that ends them with their supervisor, and what an earlier leg left running.

Not here: when to stop them (supervisor/stop).
"""
