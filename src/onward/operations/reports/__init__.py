"""Pages that need nothing else (no script, no network): a report of runs, a summary of a pipeline, their SVG charts.

No page of the web app.
"""
