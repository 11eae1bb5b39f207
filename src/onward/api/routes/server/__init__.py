"""Routes of the server itself: health, docs, the live stream, tokens, clusters and folders that cannot be read."""
