"""What comes in, whichever way: numbered records, pushed journals and files, and hints of schedulers.

Taken once, however often it is sent; nothing is read back for display.
"""
