"""HTTP itself: the protocol below the app, whole answers, streams, and how errors become answers.

Not here: tokens (access), routes, anything about runs.
"""
