"""Standalone HTML without scripts or network: a report of runs, a summary of a pipeline, their SVG charts.

Not here: pages of the web app (web, api).
"""
