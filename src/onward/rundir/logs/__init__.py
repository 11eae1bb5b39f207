"""Logs of any length: their ends, and searching them."""
