"""`onward cluster` and `onward clusters`: arguments and text.

Not here: asking schedulers (operations/clusters).
"""
