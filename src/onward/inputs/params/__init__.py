"""The params file and the flag line: their sections, changes for a clone, and options in the scheduler's own words.

RunDraft out; nothing here submits.
"""
