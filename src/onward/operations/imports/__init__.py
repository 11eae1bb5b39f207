"""Importing what other tools have written into the tracker. Their files are only read.

Not here: live clients of those tools (api/mlflow, tracker/tensorboard).
"""
