"""Points that clients log over HTTP: parsed, checked and handed to the tracker on the fast path.

Not here: reading points back (routes/metrics), storing them (tracker/ingest).
"""
