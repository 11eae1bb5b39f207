"""From the run's folder to the node: the newest checkpoint that verifies, and where the node reads it from.

Not here: publishing and deleting.
"""
