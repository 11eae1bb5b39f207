"""Making a run: the code snapshot, the run folder with everything frozen, leg 1 queued once; also clones.

What happens to a run afterwards lives in runs/ and repair/.
"""
