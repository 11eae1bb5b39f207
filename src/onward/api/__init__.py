"""The server: one gate in front of everything, then a small door for the hot paths and FastAPI for the rest."""
