"""Routes over many runs: groups, best runs, filter completion, saved views and export."""
