"""What a pipeline's benchmarks say: table, confidence intervals, differences, quality gates, and their text forms.

Pure; reading results from disk lives in operations.
"""
