"""Charts: what is drawn of a series."""
