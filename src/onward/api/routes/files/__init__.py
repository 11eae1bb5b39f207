"""Routes of files: artifacts, and logs with their search. No path leaves its run's folder."""
