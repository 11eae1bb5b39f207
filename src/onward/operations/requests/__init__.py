"""From an accepted request to one run and one answer, step by step.

Messages and brokers live in onward.gateway, the requests' store in onward.tracker.
"""
