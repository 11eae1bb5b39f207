"""The server: an access gate in front of everything, a fast path for points, FastAPI routes for the rest.

Not here: what a verb does (operations), SQL (tracker), requests from RabbitMQ (gateway).
"""
