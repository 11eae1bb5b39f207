"""The HTTP server on a node's loopback that the relay answers through."""
