"""Routes that read metrics: charts, aggregates, metric keys and sparklines."""
