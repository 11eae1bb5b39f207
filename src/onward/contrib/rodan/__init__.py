"""The Rodan application: its queue messages (protocol v1), its settings and its login.

Not here: protocol v2 (gateway/messages).
"""
