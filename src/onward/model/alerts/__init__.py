"""Alert rules, and the messages made from their notices. Pure.

Not here: sending (operations/alerts), storing (tracker/alerts).
"""
