"""What goes over the wire: incoming messages, protocol v2, replies and their packed results.

Not here: connections (rabbitmq). Other protocols register through the entry point onward.gateway_protocols.
"""
