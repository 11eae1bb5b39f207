"""Nouns and rules: frozen values and pure functions.

Not here: files, processes, clocks, network: nothing in this room does input or output.
"""
