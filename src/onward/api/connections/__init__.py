"""Connections to the server, before anybody is known by a token."""
