"""The pipeline file: includes and variables, sections, sweeps, and the plan it expands to.

Not here: running the plan (pipelines), the plan itself (model/pipelines).
"""
