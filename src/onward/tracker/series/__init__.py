"""Metrics: points packed into chunks, stitched across legs, compacted, and read as charts and aggregates.

Which runs to read is decided elsewhere.
"""
