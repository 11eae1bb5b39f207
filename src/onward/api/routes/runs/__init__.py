"""Routes of runs and experiments: create, change, act on, and everything that the page of one run shows."""
