"""Records of thousands of metrics at a time, kept as tails until there is enough for a chunk of each.

Only the series beside it reads them.
"""
