"""Nouns of the gateway: requests, outcomes, the files they need, settings. Pure.

Not here: the wire format of any protocol (gateway/messages, contrib).
"""
