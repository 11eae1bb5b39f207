"""Where the screen's data comes from: one interface, implemented by the tracker's server and by run folders.

Not here: drawing.
"""
