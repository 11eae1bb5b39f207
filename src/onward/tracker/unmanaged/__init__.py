"""Runs that Onward did not submit: what they record about themselves, whether their process is alive, their legs.

Not here: runs that have a journal.
"""
