"""Existing batch scripts: their #SBATCH and #$ lines, the same options on the command line, contradictions, checks before submit.

Not here: running a script (supervisor/preparation), writing job scripts (schedulers).
"""
