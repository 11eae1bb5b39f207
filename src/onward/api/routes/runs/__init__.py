"""Routes for runs and experiments: create, change, act on, and everything the page of one run shows.

Not here: lists over many runs (routes/search), what an action does (operations/runs).
"""
