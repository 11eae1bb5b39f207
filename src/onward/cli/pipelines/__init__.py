"""`onward pipeline`: plan, run, show, rerun, summary. Arguments and text.

Not here: the work itself (operations/pipelines).
"""
