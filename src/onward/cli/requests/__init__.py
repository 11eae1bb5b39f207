"""`onward gateway` and `onward request`: both ends of the broker's queues. Arguments and text.

Not here: messages and the broker (gateway, sender).
"""
