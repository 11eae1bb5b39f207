"""TensorBoard event files: the legs they belong to, and the tail that follows them into the tracker.

Not here: reading their records (rundir.event_files); images, histograms and texts.
"""
