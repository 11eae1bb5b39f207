"""Grid Engine through its own programs and its accounting file: the adapter, a snapshot, resource options, reading of its output.

Nothing here decides what becomes of a run.
"""
