"""One module for each screen: state and data in, lines out. Pure."""
