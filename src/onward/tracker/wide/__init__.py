"""Wide records: thousands of metrics at a time, kept together until there is enough for a chunk of each."""
