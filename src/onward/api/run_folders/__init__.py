"""From a run in the tracker to its folder, its history, and what was pushed of it.

Not here: routes; reading many folders in the background (tracker/ingest/folders).
Only folders below the configured roots are opened, and those that code may be run from.
"""
