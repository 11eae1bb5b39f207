"""Who may call the server: the gate that every request passes, tokens, allowed hosts, rate limits, login, signed links.

Not here: what a route answers (routes), how tokens are stored (tracker/access).
"""
