"""Verbs about runs that are there: runs, show, logs, cancel, stop, resume, checkpoints, report, top, and following one.

Only arguments and text; the work is in operations.
"""
