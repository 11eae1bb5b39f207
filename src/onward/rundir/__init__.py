"""A run's folder, the truth about a run: layout, journal, spool, claims, frozen code. One writer per file.

Not here: checkpoints (checkpoints), decisions (model/policy), databases (tracker).
"""
