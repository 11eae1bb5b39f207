"""The database: where it is, opening and upgrading it, its one writer, the election among servers.

Not here: runs and metrics. Schema changes are in tracker/migrations.
"""
