"""Run folders on shared storage: which are read when, who owns them, how far each file was read, which are unreadable.

Not here: writing into a run folder.
"""
