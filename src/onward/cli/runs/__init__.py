"""Verbs about existing runs: runs, show, logs, cancel, stop, resume, checkpoints, report, top, and following a run.

Not here: creating runs (cli/submit), the work itself (operations/runs).
"""
