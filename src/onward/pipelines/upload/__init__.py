"""Uploading new results of a pipeline to a folder, a host or a URL, in a process of its own.

Not here: changing anything in the pipeline except the record of what was uploaded.
"""
