"""What comes in, by whatever route: numbered records, pushed journals and files, scheduler hints. Stored once, however often it is sent.

Not here: reading anything back for display.
"""
