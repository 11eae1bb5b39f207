"""A pipeline's folder: its layout, its benchmark tasks and their attempts. One writer per file.

Not here: running tasks (pipelines/benchmarks).
"""
