"""Existing batch scripts: #SBATCH and #$ lines read as their schedulers read them, contradictions, and checks before submit.

It never runs a script.
"""
