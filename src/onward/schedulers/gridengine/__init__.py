"""Grid Engine through its own programs and its accounting file.

Not here: any decision about a run.
"""
