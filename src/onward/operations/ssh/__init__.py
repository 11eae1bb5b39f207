"""A host that is reached through ssh: the command line, the call, the archive sent there, the agent that answers there.

Not here: verbs. Nothing outside this package knows about ssh; agent code is standard library only.
"""
