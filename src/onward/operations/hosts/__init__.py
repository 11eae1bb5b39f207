"""Where runs are: this machine, and all hosts that the settings name, behind one set of verbs with plain data.

How ssh works lives in ssh/.
"""
