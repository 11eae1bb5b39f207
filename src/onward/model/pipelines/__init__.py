"""Nouns and rules of a pipeline: plan, tasks, attempts, scores, environment builds, uploads, and what it needs next. Pure.

Not here: parsing (inputs/pipeline), running (pipelines).
"""
