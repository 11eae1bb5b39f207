"""Who may come in: the gate that every request passes, tokens, allowed hosts, rate limits, login and signed links.

Nothing here knows what a route answers.
"""
