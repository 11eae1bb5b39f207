"""One leg from begin to end: may it begin, how did earlier legs end, hand over, train, watch, judge the end.

Not here: preparation, ranks, relay and telemetry: each has its own package beside this one.
"""
