"""From an accepted request to one run and one answer, step by step.

Not here: messages and brokers (gateway), the store (tracker/requests).
"""
