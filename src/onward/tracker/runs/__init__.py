"""Runs as rows: create, change and read them with their legs, params, experiments, summaries, artifacts and logged models.

Not here: points (tracker/series), filters (tracker/search).
"""
