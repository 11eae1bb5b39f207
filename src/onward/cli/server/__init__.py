"""`onward up`, and verbs about the tracker: token, backup, import, sync, epilog.

Not here: the server (api), the database (tracker).
"""
