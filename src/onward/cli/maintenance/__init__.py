"""`onward doctor`, `tend` and `clean`: arguments and text.

Not here: the checks and repairs themselves (operations/admin, operations/repair).
"""
