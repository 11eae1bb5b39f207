"""Pipelines, as verbs on the submitting side: start, list, cancel, rerun, summary, upload.

Not here: what runs inside a job (pipelines).
"""
