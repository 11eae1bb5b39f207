"""Metrics: points packed into chunks, stitched across legs, compacted, and read as charts and aggregates.

Not here: which runs to read (tracker/search), parsing what comes in (tracker/ingest).
"""
