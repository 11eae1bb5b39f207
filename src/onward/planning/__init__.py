"""Arithmetic over a cluster's snapshot and its history: pure, no input or output."""
