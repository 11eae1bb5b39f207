"""What a training in a job does with MLflow's client, all settings from the environment: `python in_a_job.py FILE` writes what it read back."""

import json
import math
import os
import sys
import tempfile
from pathlib import Path

import mlflow

os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "1"
client = mlflow.MlflowClient()
mlflow.set_experiment("a name that the script has")
with mlflow.start_run() as run:
    id = run.info.run_id
    mlflow.log_params({"lr": 0.1, "layers": "3"})
    for step in range(30):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    mlflow.log_metrics({"nan": math.nan, "inf": math.inf}, step=3)
    mlflow.set_tags({"team": "vision", "gone": "soon"})
    mlflow.delete_tag("gone")
    mlflow.log_text("hello", "notes/a.txt")
    mlflow.log_dict({"a": 1}, "d.json")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "empty").touch()
        mlflow.log_artifacts(folder, "more")
with mlflow.start_run() as second:  # without MLFLOW_RUN_ID, which the first has used up
    again = second.info.run_id
found = client.get_run(id)
records = {
    "id": id,
    "again": again,
    "experiment": run.info.experiment_id == os.environ["MLFLOW_EXPERIMENT_ID"],
    "params": found.data.params,
    "metrics": {key: str(value) for key, value in found.data.metrics.items()},
    "team": found.data.tags.get("team"),
    "gone": found.data.tags.get("gone"),
    "status": found.info.status,
    "history": [metric.step for metric in client.get_metric_history(id, "loss")],
    "files": [file.path for file in client.list_artifacts(id)],
    "text": Path(mlflow.artifacts.download_artifacts(run_id=id, artifact_path="notes/a.txt")).read_text(),
    "found": [run.info.run_id for run in client.search_runs([found.info.experiment_id])],
}
if hasattr(client, "create_logged_model"):
    model = client.create_logged_model(found.info.experiment_id, name="net", source_run_id=id, tags={"a": "b"}, params={"p": "1"})
    client.finalize_logged_model(model.model_id, "READY")
    mlflow.log_metric("acc", 0.5, step=1, model_id=model.model_id, run_id=id)
    client.log_outputs(id, [mlflow.entities.LoggedModelOutput(model.model_id, step=1)])
    seen = client.get_logged_model(model.model_id)
    records["model"] = {"id": seen.model_id, "status": str(seen.status), "metrics": [metric.value for metric in seen.metrics]}
Path(sys.argv[1]).write_text(json.dumps(records))
