"""Parsing what people write: params files, pipelines, flags, batch scripts and recipes become drafts of runs and plans.

Not here: submitting or running any of it (operations, pipelines).
"""
