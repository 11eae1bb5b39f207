"""The tracker: an index of runs and their metrics, in one database. `store.Tracker` is its face."""
