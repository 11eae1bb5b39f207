"""Snapshots of clusters, shared by everyone who looks, so that a scheduler is rarely asked; the last one is saved for the terminal UI.

Not here: arithmetic over them (planning), the queries themselves (schedulers).
"""
