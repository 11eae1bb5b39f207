"""Who watches over runs: every look at them, a timer, or nobody yet."""
