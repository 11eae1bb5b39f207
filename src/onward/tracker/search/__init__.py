"""Finding runs: the filter language, MLflow filters, text search, groups, best runs, completion, saved views.

Not here: changing runs.
"""
