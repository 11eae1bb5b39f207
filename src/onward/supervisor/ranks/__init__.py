"""The processes of a training on all its nodes: launchers, the wrapper of each rank, the agent on every other node, and
the agreement at which call all stop. It decides nothing about the run.
"""
