"""Folders of legs on a node's own disk: whose they are, and what to do with those whose process has gone."""
