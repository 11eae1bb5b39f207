"""How the stores beside this file were made: by MLflow itself, 3.17.2 and 2.22.5, then packed as text. Not run by tests.

LOGNAME=ada MLFLOW_ALLOW_FILE_STORE=true python make.py file:/srv/mlflow/mlruns     → mlruns.json, mlruns-2.json
LOGNAME=ada python make.py sqlite:////srv/mlflow/mlflow.db                          → sqlite.sql
"""

import math
import sys

import mlflow
from mlflow import MlflowClient
from mlflow.entities import Metric, Param

T = 1_700_000_000_000


def main(uri: str) -> None:
    mlflow.set_tracking_uri(uri)
    client = MlflowClient()
    digits = client.create_experiment("digits", tags={"team": "vision"})
    first = client.create_run(digits, start_time=T, run_name="first", tags={"note": "a tag\nof two lines"}).info.run_id
    curve = [Metric("loss", 2 / (step + 1), T + step * 1000, step) for step in range(20)]
    odd = [Metric("val/acc", value, T + step, step) for step, value in enumerate((math.nan, math.inf, -math.inf, 0.5))]
    client.log_batch(first, metrics=curve + odd, params=[Param("lr", "0.1"), Param("model/depth", "12"), Param("words", "ü – ok")])
    client.log_text(first, "hello\n", "notes/readme.txt")
    client.log_text(first, "x" * 100, "weights.bin")
    client.set_terminated(first, "FINISHED", T + 300_000)
    second = client.create_run(digits, start_time=T + 1000, run_name="second").info.run_id
    client.log_metric(second, "loss", 1.0, timestamp=T + 5, step=0)
    client.log_metric(second, "loss", 1.5, timestamp=T + 6, step=0)
    client.set_terminated(second, "FAILED", T + 2000)
    deleted = client.create_run(digits, start_time=T + 2000, run_name="deleted").info.run_id
    client.log_param(deleted, "lr", "9")
    client.set_terminated(deleted, "KILLED", T + 3000)
    client.delete_run(deleted)
    gone = client.create_experiment("gone")
    inside = client.create_run(gone, start_time=T, run_name="in gone").info.run_id
    client.log_metric(inside, "m", 1.0, timestamp=T, step=1)
    client.set_terminated(inside, "FINISHED", T + 10)
    client.delete_experiment(gone)
    running = client.create_run("0", start_time=T + 9, run_name="running").info.run_id
    client.log_metric(running, "m", 3.0, timestamp=T, step=1)
    mlflow.set_experiment("digits")
    with mlflow.start_run(run_name="with data") as run:
        import numpy
        from mlflow.data.numpy_dataset import from_numpy

        mlflow.log_input(from_numpy(numpy.zeros((3, 2)), name="zeros"), context="training")
        if hasattr(mlflow, "initialize_logged_model"):  # not in 2.x
            from mlflow.entities import LoggedModelOutput

            model = mlflow.initialize_logged_model(name="net", model_type="toy", tags={"k": "v"}, params={"p": "1"})
            client.log_metric(run.info.run_id, "acc", 0.7, step=2, timestamp=T, model_id=model.model_id)
            mlflow.finalize_logged_model(model.model_id, "READY")
            mlflow.log_outputs(models=[LoggedModelOutput(model.model_id, 2)])


main(sys.argv[1])
