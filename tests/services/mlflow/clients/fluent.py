"""The fluent calls of an ordinary script, asynchronous ones among them."""

import tempfile
from pathlib import Path

import mlflow

mlflow.set_experiment("plain")
with mlflow.start_run(run_name="by hand", tags={"k": "v"}) as run:
    mlflow.log_params({"lr": 0.1, "depth": 3})
    for step in range(5):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
        mlflow.log_metrics({"a": step, "b": -step}, step=step)
    mlflow.log_metric("late", 1.0, synchronous=False)
    mlflow.set_tag("mlflow.note.content", "a note")
    file = Path(tempfile.mkdtemp()) / "out.txt"
    file.write_text("text")
    mlflow.log_artifact(str(file), "files")
    mlflow.log_text("hello", "hello.txt")
    mlflow.flush_async_logging()
with mlflow.start_run(run_id=run.info.run_id):
    mlflow.log_metric("loss", 0.1, step=5)
print(mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss"))
print(mlflow.search_runs(filter_string="metrics.loss < 1", order_by=["metrics.loss ASC"]).shape)
