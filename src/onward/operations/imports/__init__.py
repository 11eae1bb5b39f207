"""Taking over what other tools have written into the tracker. Only reading on their side."""
