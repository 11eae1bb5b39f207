"""Trouble: what a person has to look at, since nothing repairs it by itself."""
