"""The command line: one file per verb, data on stdout, messages on stderr.

Not here: what a verb does (operations). A verb reads arguments and prints.
"""
