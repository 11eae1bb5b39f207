"""Files that other users own or name: opened below a root without following links, stored whole, received in pieces.

Not here: what the files mean.
"""
