"""Checkpoints as complete, verified directories: manifest, copying, branching, and what is still unpublished.

Not here: which checkpoints are kept (model/checkpoint), when a training saves (sdk).
"""
