"""Routes over many runs: groups, best runs, filter completion, saved views, export.

Not here: the filter language (tracker/search).
"""
