"""The Rodan application: its queue messages (protocol v1), its settings and its login. Registered as the gateway protocol v1."""
