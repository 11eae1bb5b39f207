"""The tracker: an index of runs and their metrics in one database. `store.Tracker` is its public interface.

Not here: HTTP (api), decisions about runs (model), writing into run folders.
"""
