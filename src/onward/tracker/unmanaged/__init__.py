"""Runs that Onward did not submit: what they say of themselves, whether their process still lives, and their legs.

Nothing of runs with a journal.
"""
