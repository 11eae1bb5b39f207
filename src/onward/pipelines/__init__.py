"""What runs a pipeline inside jobs: advance it, build environments, keep checkpoints for benchmarks. Standard library only.

Not here: parsing (inputs/pipeline), verbs (operations/pipelines). The supervisor reaches this room by hooks only.
"""
