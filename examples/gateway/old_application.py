"""An application as it was written for the first gateway: it publishes a job by pika, waits on the queue of results, keeps the models.

    HPC_RABBITMQ_HOST=… HPC_RABBITMQ_USER=… HPC_RABBITMQ_PASSWORD=… python examples/gateway/old_application.py --folder folio --out models

`--folder` is where its files lie under its own address, `/uploads/`. Nothing here knows of Onward.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import uuid
from pathlib import Path

import pika

INPUTS = {
    "Image": "page",
    "Background": "background",
    "Selected Regions": "regions",
    "rgba PNG - Layer 0": "notes",
    "rgba PNG - Layer 1": "staff",
}
SETTINGS = {
    "Maximum number of training epochs": 2,
    "Maximum number of samples per label": 100,
    "Patch height": 64,
    "Patch width": 64,
    "Maximum time (D-HH:MM)": "0-00:30",
    "Maximum memory (MB)": 4096,
    "CPUs": 2,
    "Slurm Notification Email": "",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--port", type=int, default=5672)
    args = parser.parse_args()
    login = pika.PlainCredentials(os.environ["HPC_RABBITMQ_USER"], os.environ["HPC_RABBITMQ_PASSWORD"])
    connection = pika.BlockingConnection(pika.ConnectionParameters(os.environ["HPC_RABBITMQ_HOST"], args.port, credentials=login))
    channel = connection.channel()
    for queue in ("hpc-jobs", "hpc-results"):
        channel.queue_declare(queue=queue)
    own = str(uuid.uuid4())
    body = {"inputs": {name: f"/uploads/{args.folder}/{file}.png" for name, file in INPUTS.items()}, "settings": SETTINGS}
    properties = pika.BasicProperties(reply_to="hpc-results", correlation_id=own)
    channel.basic_publish(exchange="", routing_key="hpc-jobs", body=json.dumps(body).encode(), properties=properties)
    answer = b""
    for method, seen, data in channel.consume("hpc-results"):
        if seen.correlation_id == own:
            channel.basic_ack(method.delivery_tag)
            answer = data
            break
        channel.basic_nack(method.delivery_tag)
    connection.close()
    return keep(json.loads(answer), args.out)


def keep(answer: dict[str, str], folder: Path) -> int:
    if "error" in answer:
        print(answer["error"], file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in answer.items():
        (folder / f"{name}.hdf5").write_bytes(base64.b64decode(model))
        print(folder / f"{name}.hdf5")
    return 0


if __name__ == "__main__":
    sys.exit(main())
