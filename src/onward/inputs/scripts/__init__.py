"""Existing batch scripts: #SBATCH and #$ lines read as their schedulers read them, contradictions, checks before submit.

Not here: running a script (supervisor/preparation), writing job scripts (schedulers).
"""
