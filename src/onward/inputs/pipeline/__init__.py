"""A pipeline's file: its text with includes and variables, its sections, sweeps, and the plan it expands to.

Carrying the plan out is no business of this package.
"""
