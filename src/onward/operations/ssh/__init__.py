"""A host that is reached through ssh: the command line, the call, the archive that is carried there, the agent that answers there.

Nothing outside knows of ssh; agent code is the standard library alone.
"""
