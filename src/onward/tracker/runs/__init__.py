"""Runs as rows: create, change and read them with their legs, params, experiments, summaries, artifacts and logged models.

Points are in series, filters in search.
"""
