"""Folders of legs on a node's own disk: who owns them, and what becomes of those whose process is gone.

Not here: publishing checkpoints (checkpoints/publishing).
"""
