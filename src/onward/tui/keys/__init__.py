"""Keys: the table of bindings, and what each does to the state or asks of the source. Nothing is drawn here."""
