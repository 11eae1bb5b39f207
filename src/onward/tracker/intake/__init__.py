"""Intake: which run folders the tracker looks at, and when."""
