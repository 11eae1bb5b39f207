"""Importing an MLflow store: a reader for files and one for SQLite behind one interface, and the importer.

Not here: MLflow's HTTP calls (api/mlflow). The mlflow package is not needed.
"""
