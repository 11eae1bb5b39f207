"""`onward submit`, `run` and `clone`: their flags, and drafts from a params file, a flag line or a batch script.

No run is made here: that is operations.submit.
"""
