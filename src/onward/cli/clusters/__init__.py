"""`onward cluster` and `clusters`: arguments and text."""
