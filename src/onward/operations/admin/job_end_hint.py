"""Tell Onward that a job has ended. Run by a scheduler's epilog; copied beside it by `onward epilog install`. Standard library alone.

Sends a hint that is signed with a secret (HMAC-SHA256 over id.timestamp.body, as standardwebhooks.com has it), so that the secret itself
never travels. What the job's owner chose (its name) is data here from end to end. Whatever goes wrong, it is over within two seconds and
the exit code is 0: an epilog that fails takes a node or a queue out of service.

Written for any Python from 3.6 on, since it runs on a scheduler's machine as that is.
"""

# ruff: noqa: UP037
import base64
import hashlib
import hmac
import json
import os
import signal
import stat
import sys
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

MOST_SECONDS = 2.0
_LONGEST = 200  # characters of a text that is told
_TOLD = {
    "slurm": {
        "job_id": b"SLURM_JOB_ID",
        "array_job_id": b"SLURM_ARRAY_JOB_ID",
        "array_task_id": b"SLURM_ARRAY_TASK_ID",
        "cluster": b"SLURM_CLUSTER_NAME",
        "name": b"SLURM_JOB_NAME",
        "user": b"SLURM_JOB_USER",
        "exit_code": b"SLURM_JOB_EXIT_CODE2",
    },
    "gridengine": {
        "job_id": b"JOB_ID",
        "array_task_id": b"SGE_TASK_ID",
        "cluster": b"SGE_CLUSTER_NAME",
        "name": b"JOB_NAME",
        "user": b"USER",
        "exit_code": b"SGE_JOBEXIT_STAT",
    },
}


def body_of(scheduler: str, env: "Mapping[bytes, bytes]", now: float) -> bytes:
    """The hint, as JSON: only what the scheduler has set, whatever is in it."""
    found = {name: env[key].decode("utf-8", "replace")[:_LONGEST] for name, key in _TOLD[scheduler].items() if env.get(key)}
    return json.dumps({"scheduler": scheduler, "at": round(now, 3), **found}).encode("ascii")


def headers_of(secret: str, body: bytes, id: str, now: float) -> "dict[str, str]":
    key = hashlib.sha256(secret.encode()).hexdigest().encode()  # what the server has of the secret
    signature = hmac.new(key, f"{id}.{int(now)}.".encode() + body, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(int(now)),
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


def read_secret(path: str) -> str:
    """Only from a file of our own that nobody else can read."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        seen = os.fstat(handle)
        if not stat.S_ISREG(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & 0o077:
            raise PermissionError(f"{path} must be a file owned by user {os.geteuid()}, with mode 0600")
        return os.read(handle, 4096).decode().strip()
    finally:
        os.close(handle)


def post(url: str, body: bytes, headers: "Mapping[str, str]", cafile: "str | None") -> int:
    import http.client

    parts = urlsplit(url)
    connection: "http.client.HTTPConnection"
    if parts.scheme == "https":
        import ssl

        context = ssl.create_default_context(cafile=cafile)
        connection = http.client.HTTPSConnection(parts.netloc, timeout=MOST_SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection(parts.netloc, timeout=MOST_SECONDS)
    try:
        connection.request("POST", f"{parts.path.rstrip('/')}/webhooks/hints", body=body, headers=dict(headers))
        return connection.getresponse().status
    finally:
        connection.close()


def main(scheduler: str) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "hint.json"), encoding="utf-8") as file:
        settings = json.load(file)
    now = time.time()
    body = body_of(scheduler, os.environb, now)
    headers = headers_of(read_secret(os.path.join(folder, f"{scheduler}.secret")), body, os.urandom(16).hex(), now)
    status = post(settings["url"], body, headers, settings.get("cafile"))
    if status >= 300:
        sys.stderr.write(f"onward: {settings['url']} answered {status}\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Exception as error:
        sys.stderr.write(f"onward: the hint was not sent: {error}\n")
    sys.exit(0)
