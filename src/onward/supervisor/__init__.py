"""Our process inside a job. It runs one leg of a run, from claim to end. Standard library only.

Not here: what a run does next (model/policy), anything that runs outside jobs (operations).
"""
