"""What a pipeline's benchmarks say: table, confidence intervals, differences, quality gates, text formats. Pure.

Not here: reading results from disk (operations/pipelines).
"""
