"""From the node's disk to the run's folder: which checkpoint is published next, the publishing itself, what is done when
the store is full, and which old ones are deleted.
"""
