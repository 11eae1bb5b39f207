"""Checkpoints that a training keeps by itself, in its working folder: seen as progress, published, put back.

Not here: what is saved into ONWARD_CHECKPOINT_DIR (checkpoints).
"""
