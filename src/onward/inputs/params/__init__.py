"""The params file and its flags: sections, changes for a clone, options in the scheduler's own words.

Not here: submitting. The result is a RunDraft.
"""
