"""Keeping a machine in order: doctor, cleanup of work folders and environments, epilog scripts for schedulers.

Not here: anything that touches checkpoints, logs or journals.
"""
