"""HTTP calls and Slurm job states for scripts that were written for the older tracker.

Not here: the native API (api/routes), the relay's answers to the same calls (supervisor/relay).
"""
