"""Keys: the table of bindings, and what each does to the state or asks of the source.

Not here: drawing.
"""
