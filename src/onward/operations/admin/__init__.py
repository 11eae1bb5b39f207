"""What keeps a machine in order: the doctor, the cleanup of work folders and environments, epilog scripts for schedulers.

Nothing here touches checkpoints, logs or journals.
"""
