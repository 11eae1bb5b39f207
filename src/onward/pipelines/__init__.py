"""What runs a pipeline inside jobs: advance it, build environments, keep checkpoints for benchmarks.

Standard library only. What people write is in onward.inputs; supervisor may not import this room.
"""
