"""A run's folder: the truth about a run, one writer a file."""
