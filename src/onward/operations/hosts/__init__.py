"""Where runs are: this machine, and all hosts that the settings name, behind one set of verbs.

Not here: how ssh works (operations/ssh).
"""
