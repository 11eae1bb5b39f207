"""What the server does besides answering: its chores, their threads, and the list of live events.

Not here: routes, and the work of a chore itself (operations, tracker).
"""
