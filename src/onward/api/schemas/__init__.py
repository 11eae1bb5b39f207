"""What the native API accepts and returns, as pydantic models, and how records become them.

Not here: queries, routes, MLflow's shapes (api/mlflow).
"""
