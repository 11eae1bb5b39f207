"""Routes for files: artifacts, logs and searching logs. No path leaves its run's folder.

Not here: opening files without following links (rundir/files), MLflow artifacts (api/mlflow).
"""
