"""The verbs: each a function that the command line (and later API and gateway) calls."""
