"""Run folders on shared storage: which are looked at when, whose they are, how far each file was read, and those set
aside as unreadable. Read only; nothing here writes into a run folder.
"""
