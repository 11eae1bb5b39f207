"""Records of thousands of metrics at a time, kept in tails until there is enough for a chunk of each.

Not here: anything that code outside tracker/series may call.
"""
