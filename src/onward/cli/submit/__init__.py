"""`onward submit`, `run` and `clone`: flags, and drafts from a params file, flags or a batch script.

Not here: creating the run (operations/submit), the keys of a params file (inputs/params).
"""
