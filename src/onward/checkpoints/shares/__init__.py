"""Checkpoints that ranks of several nodes write together: each node's share is put into the store and all are gathered
into one checkpoint.
"""
