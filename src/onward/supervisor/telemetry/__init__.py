"""What a job measures and sends: samples of host and GPUs, and the push of records and files to the tracker's server.

Nothing here may hurt or stop a training.
"""
