"""Nouns of the gateway: requests, their outcomes, the files they need, its settings. Pure; no wire format of any protocol."""
