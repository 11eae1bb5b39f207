"""Finding runs: the filter language, MLflow filters, text search, groups, best runs, completion and saved views.

Reads rows, changes none but views.
"""
