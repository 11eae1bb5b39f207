"""Slurm through its own programs.

Not here: any decision about a run, #SBATCH lines of users' scripts (inputs/scripts).
"""
