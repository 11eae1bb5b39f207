"""The terminal screen: `onward top`."""
