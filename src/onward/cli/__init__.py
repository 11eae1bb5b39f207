"""The command line: a file a verb, data on stdout, talk on stderr."""
