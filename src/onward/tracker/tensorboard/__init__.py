"""TensorBoard event files: framing, scalars, legs, and the tail that follows them.

Not here: images, histograms and texts: only scalars are read.
"""
