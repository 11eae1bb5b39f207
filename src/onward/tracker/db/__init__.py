"""The database: where it is, how it is opened and upgraded, the one writer, the election among servers.

It knows nothing of runs or metrics.
"""
