"""How verbs and programs reach the tracker: its database on this machine, its server over HTTP, a backup.

What is in the database lives in onward.tracker.
"""
