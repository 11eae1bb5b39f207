"""Saves that another process writes: the training copies its state into shared memory and trains on.

Not here: what a state is made of (torch), the process that writes (checkpoints/save_writer).
"""
