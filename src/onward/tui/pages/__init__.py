"""One module per screen: state and data in, lines out. Pure.

Not here: fetching data (tui/sources).
"""
