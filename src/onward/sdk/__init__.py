"""What a training script imports. Standard library only; works without a supervisor, server or cluster.

Not here: the supervisor's side (supervisor, rundir). sdk/contract has the names that both share.
"""
