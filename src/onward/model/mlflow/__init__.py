"""MLflow's REST API as values: its JSON, limits and names, for the server and for the relay inside jobs.

Not here: answering its calls (`api/mlflow`, `supervisor/relay`), its filters (`tracker/search`), reading its stores (`operations/imports`).
"""
