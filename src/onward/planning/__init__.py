"""What could start now: arithmetic over a cluster's snapshot. Pure.

Not here: asking schedulers (operations/clusters).
"""
