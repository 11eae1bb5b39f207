"""The local scheduler: a queue of jobs on this machine, in a folder, with a keeper process that starts them.

No server, nothing of other schedulers.
"""
