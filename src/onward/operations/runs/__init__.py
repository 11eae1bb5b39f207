"""One existing run: find it, read it, its logs, follow it, cancel, stop, resume.

Not here: creating a run (operations/submit), repairing one (operations/repair).
"""
