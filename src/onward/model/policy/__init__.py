"""What a run does next: how a leg's end is classified, when a run stops for good, how long a job waits for storage. Pure.

Not here: acting on it (supervisor/leg, operations/repair).
"""
