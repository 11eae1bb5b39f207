"""How verbs reach the tracker: its database on this machine, its server over HTTP, backups.

Not here: what is in the database (tracker).
"""
