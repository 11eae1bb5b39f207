"""From a run in the tracker to its folder, its history and what was pushed of it.

Only folders below the configured roots are opened; no routes.
"""
