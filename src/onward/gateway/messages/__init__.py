"""What goes over the wire: incoming messages, the current protocol (v2), replies and their packed results.

No connection is opened here; other protocols come by the entry point onward.gateway_protocols.
"""
