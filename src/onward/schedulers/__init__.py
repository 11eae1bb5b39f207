"""What can run a job: one small Protocol, the registry, plugins, job scripts, and the one way to call programs.

Not here: what a job's end means for a run (model/policy).
"""
