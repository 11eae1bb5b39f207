"""Logs of any length: reading the end, and searching.

Not here: writing or mirroring logs (rundir/mirror).
"""
