"""The demo of the gateway: a real broker, two applications, trainings on this machine, and models that come back and are used.

1. a RabbitMQ of its own, in a folder of its own
2. `onward up --gateway`: the gateway, and the page that shows requests
3. an application of today asks by `onward request`, whose files anybody may read
4. an application of 2020 asks as it always did, with files that need a login
5. a request that cannot be is told why
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from beds import packages
from beds.rabbitmq import PACKAGES, USER, RabbitMQ, free_ports, is_installed
from examples.gateway.rodan import Rodan

REPO = Path(__file__).parents[2]
RECIPE = REPO / "src" / "onward" / "contrib" / "patchwise"
LAYERS = {"Background Model": "background", "Model 0": "notes", "Model 1": "staff"}
SETTINGS = {
    "Maximum number of training epochs": 2,
    "Maximum number of samples per label": 100,
    "Patch height": 64,
    "Patch width": 64,
    "Filters": 8,
}


def main() -> int:
    if not is_installed():
        packages.ensure(PACKAGES)
    work = Path(tempfile.mkdtemp(prefix="onward-gateway-"))
    work.chmod(0o755)  # the broker runs as a user of its own
    run(sys.executable, RECIPE / "pages.py", "--out", work / "files" / "folio", "--without", "text")
    print(f"everything lies in {work}\n\n1. a broker", flush=True)
    with broker_in(work / "broker") as broker, web_server(work / "files") as files, Rodan(work / "files") as rodan:
        env = surroundings(work, broker, rodan, files)
        print(f"   {broker.url()}\n\n2. onward up --gateway", flush=True)
        with gateway(work, env) as link:
            print(f"   {link}\n\n3. an application of today: onward request patchwise --wait", flush=True)
            asked = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
            inputs = {"Image": "page", "Background": "background", "rgba PNG - Layer 0": "notes", "rgba PNG - Layer 1": "staff"}
            asked += [word for name, file in inputs.items() for word in ("--input", f"{name}={files}/folio/{file}.png")]
            onward(env, "request", "patchwise", "--sender", "demo", *asked, "--wait", "--output", work / "models")
            good = used(work, env, [work / "models" / f"{name}.hdf5" for name in LAYERS])
            print("\n4. an application of 2020, with its own queues, settings and login", flush=True)
            old = {"HPC_RABBITMQ_HOST": "127.0.0.1", "HPC_RABBITMQ_USER": USER, "HPC_RABBITMQ_PASSWORD": broker.password}
            words = ("--folder", "folio", "--port", str(broker.ports.plain), "--out", work / "old-models")
            run(sys.executable, REPO / "examples" / "gateway" / "old_application.py", *words, env=env | old)
            good += used(work, env, [work / "old-models" / f"{name}.hdf5" for name in LAYERS])
            print("\n5. a request that cannot be", flush=True)
            refused = onward(env, "request", "patchwise", "--set", "Patch height=1", "--wait", check=False)
    print(f"\n{good} of {2 * len(LAYERS)} models came back and find their layers; the bad request ended with exit code {refused}")
    return 0 if good == 2 * len(LAYERS) and refused == 7 else 1


def used(work: Path, env: Mapping[str, str], models: list[Path]) -> int:
    """Find each layer on the page with its model; how many could be used."""
    print()
    good = 0
    for model in models:
        layer = LAYERS[model.name.removesuffix(".hdf5")]
        page, found = work / "files" / "folio", work / "found" / f"{layer}.png"
        found.parent.mkdir(exist_ok=True)
        words = ("--model", model, "--image", page / "page.png", "--out", found, "--truth", page / f"{layer}.png")
        print(f"   {layer}: ", end="", flush=True)
        good += run(sys.executable, RECIPE / "classify.py", *words, env=env, check=False) == 0
    return good


def surroundings(work: Path, broker: RabbitMQ, rodan: Rodan, files: str) -> dict[str, str]:
    """The settings file, and the variables that lead to it."""
    password = work / "broker-password"
    password.touch(0o600)
    password.write_text(broker.password)
    host = files.removeprefix("http://")
    (work / "settings.toml").write_text(
        f'cluster = "local"\n[gateway]\nurl = "{broker.url()}"\nuser = "{USER}"\npassword-file = "{password}"\nhosts = ["{host}"]\n'
        f'[gateway.v1]\nenabled = true\nrodan = "{rodan.url}"\n'
    )
    login = {"RODAN_USERNAME": rodan.username, "RODAN_PASSWORD": rodan.password}
    places = {"ONWARD_SETTINGS": str(work / "settings.toml"), "ONWARD_STATE_DIR": str(work / "state"), "ONWARD_ROOT": str(work / "runs")}
    return {**os.environ, **places, **login, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@contextmanager
def broker_in(folder: Path) -> Iterator[RabbitMQ]:
    broker = RabbitMQ(folder, free_ports())
    broker.prepare()
    broker.start()
    try:
        yield broker
    finally:
        broker.end()


@contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """Files that anybody may read."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def gateway(work: Path, env: Mapping[str, str]) -> Iterator[str]:
    """While it runs: the link to its page."""
    onward(env, "gateway", "declare")
    with (work / "up.out").open("wb") as out, (work / "up.log").open("wb") as log:
        command = [sys.executable, "-m", "onward", "up", "--gateway", "--port", "0"]
        process = subprocess.Popen(command, env=env, stdout=out, stderr=log)
    try:
        while "\n" not in (link := (work / "up.out").read_text()):
            if process.poll() is not None:
                raise SystemExit(f"onward up ended: {(work / 'up.log').read_text()}")
            time.sleep(0.1)
        yield link.strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def onward(env: Mapping[str, str], *words: object, check: bool = True) -> int:
    return run(sys.executable, "-m", "onward", *words, env=env, check=check)


def run(*words: object, env: Mapping[str, str] | None = None, check: bool = True) -> int:
    return subprocess.run(list(map(str, words)), env=env, check=check).returncode


if __name__ == "__main__":
    sys.exit(main())
