"""Slurm through its own programs: the adapter, a snapshot of the cluster, job states, reasons for waiting, limits of the site.

Nothing here decides what becomes of a run.
"""
