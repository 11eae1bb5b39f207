"""Where the screen's data comes from: one interface, answered by the tracker's server or by run folders. Nothing is drawn here."""
