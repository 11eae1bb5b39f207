"""The processes of a training on all nodes: launchers, the wrapper of each rank, the agent on every other node, the agreed stop.

Not here: any decision about the run.
"""
