"""`onward gateway` and `onward request`: both ends of the broker's queues."""
