"""Placeholders in commands: what they stand for, which words are source code, how text is quoted for a shell. Pure.

Not here: starting programs (supervisor/processes, schedulers/command).
"""
