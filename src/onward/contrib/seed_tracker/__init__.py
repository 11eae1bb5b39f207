"""Calls and Slurm job states of scripts written for the older tracker.

It plugs into the server through the entry point group onward.server; nothing in the core imports it.
"""
