"""Workers that do a pipeline's benchmark tasks: slots of CPUs and GPUs, one trial at a task, adapters from printed output to scores.

Nothing here submits jobs.
"""
