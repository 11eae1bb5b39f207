"""From the node's disk to the run's folder: which checkpoint is next, publishing it, full storage, deleting old ones.

Not here: the publisher's process (supervisor/leg/publisher_process).
"""
