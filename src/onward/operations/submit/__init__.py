"""Creating a run: the code snapshot, the run folder with everything frozen, leg 1 queued once; also clones.

Not here: what happens to a run afterwards (operations/runs, operations/repair).
"""
