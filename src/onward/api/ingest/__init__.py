"""Points that clients log over HTTP: parsed, checked and handed to the tracker on the fast path. Nothing is read back here."""
