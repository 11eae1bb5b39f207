"""Routes that jobs, agents and schedulers send to: records, pieces of run folders, hints.

Not here: routes for people, and the fast path for points (api/ingest).
"""
