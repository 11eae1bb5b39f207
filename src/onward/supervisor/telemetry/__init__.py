"""What a job measures and sends: samples of host and GPUs, and the push of records and files to the tracker's server.

Not here: anything that could slow down or stop the training.
"""
