"""Pipelines from outside their jobs: start, list, record, cancel, rerun, summary, upload.

What runs inside a job lives in onward.pipelines.
"""
