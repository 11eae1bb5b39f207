"""Routes that read metrics: charts, aggregates, metric keys, sparklines.

Not here: the arithmetic of charts (tracker/series).
"""
