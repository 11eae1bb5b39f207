"""From the run's folder to the node: the newest checkpoint that verifies, and where the node reads it from.

Nothing is published or deleted here.
"""
