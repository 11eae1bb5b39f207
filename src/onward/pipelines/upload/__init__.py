"""Uploading what is new of a pipeline to a folder, a host or a URL, by a process of its own.

It changes nothing in the pipeline but its notes of what has arrived.
"""
