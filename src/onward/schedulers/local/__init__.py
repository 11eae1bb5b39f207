"""The local scheduler: a queue of jobs on this machine, kept in a folder, with a keeper process that starts them.

Not here: other schedulers, any decision about a run.
"""
