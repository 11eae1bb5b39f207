"""Setting a gateway up, and checking it: the files it needs here, and the commands for the broker.

Not here: what a gateway does once it runs.
"""
