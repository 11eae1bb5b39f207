"""What is worked out from a run's history for people: why it is in its state, timeline, ETA, effort, resource use, one-line summary.

Pure; nothing here decides what a run does next.
"""
