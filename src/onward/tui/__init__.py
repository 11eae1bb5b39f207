"""The terminal UI: `onward top`.

Not here: asking a scheduler. It shows what its source knows.
"""
