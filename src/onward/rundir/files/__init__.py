"""Files of runs that others name: opened below a root without following links, stored whole, received in pieces.

What the files mean is not known here.
"""
