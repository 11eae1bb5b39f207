"""TensorBoard's event files: finding those that a training writes, their framing, and the scalars in them.

Not here: following them into the tracker (tracker.tensorboard).
"""
