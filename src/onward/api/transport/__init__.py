"""HTTP itself: the protocol below the app, whole answers and streams, and how errors become answers. No routes, no tokens, no runs."""
