"""Workers that do a pipeline's benchmark tasks: slots for CPUs and GPUs, one trial of a task, adapters from output to scores.

Not here: submitting jobs (pipelines), comparing scores (inputs/summary).
"""
