"""Checkpoints that the ranks of several nodes write together: each node's share, gathered into one checkpoint.

Not here: starting or stopping ranks (supervisor/ranks).
"""
