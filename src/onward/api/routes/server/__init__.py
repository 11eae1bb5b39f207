"""Routes about the server itself: health, API docs, live stream, tokens, clusters, unreadable folders.

Not here: anything about one run.
"""
