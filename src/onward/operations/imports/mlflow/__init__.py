"""An MLflow store taken over: a reader each for files and SQLite behind one interface, and the importer.

No MLflow is needed; MLflow's HTTP calls live in onward.api.
"""
