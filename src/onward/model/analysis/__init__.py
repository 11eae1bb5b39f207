"""What is derived from a run's history for display: why it is in its state, timeline, ETA, effort, resource use, summary line. Pure.

Not here: decisions: what a run does next is in model/policy.
"""
