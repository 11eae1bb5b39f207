"""Fetching a run's results: what there is on its host, which of it is wanted, and the folder here that it is copied into.

Not here: how a host is asked (operations/hosts and operations/ssh).
"""
