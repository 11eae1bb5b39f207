"""An application of 2020 and the gateway of an ordinary user, on a real Slurm: for every way a training can end there is one answer."""

from __future__ import annotations

import base64
import json
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from beds.rabbitmq import USER, RabbitMQ
from beds.slurm import SlurmBed
from examples.gateway.rodan import Rodan
from tests.brokers import broker_of_its_own
from tests.cluster.conftest import REPO, Person
from tests.gateway_old import OldProducer

pytestmark = [pytest.mark.cluster]

RECIPE = """
name: mock
recipe:
  title: Does what its image says
  inputs:
    Image: {required: true}
    Background: {required: true}
    Selected Regions: {}
    "rgba PNG - Layer {n}": {n: 0-9}
  settings:
    Maximum number of training epochs: {type: int, min: 1, max: 1000, default: 15, to: params.epochs}
    Maximum number of samples per label: {type: int, min: 100, default: 10000, to: params.samples}
    Patch height: {type: int, min: 64, default: 256, to: params.height}
    Patch width: {type: int, min: 64, default: 256, to: params.width}
    Maximum time (D-HH:MM): {type: duration, default: 0-06:00, to: [resources.time, limits.total-time]}
    Maximum memory (MB): {type: memory, min: 64, default: 300, to: resources.mem}
    CPUs: {type: int, min: 1, max: 4, default: 1, to: resources.cpus-per-task}
    Slurm Notification Email: {type: str, max: 254, default: "", to: resources.mail-user}
  outputs:
    Background Model: {file: Background Model.hdf5, required: true}
    "Model {n}": {file: "Model {n}.hdf5", of: "rgba PNG - Layer {n}"}
train:
  command: PYTHON train.py
  params: {epochs: 15, samples: 100, height: 64, width: 64}
"""

TRAIN = """
import json, os, sys, time
from pathlib import Path
import onward
run = onward.init()
request = json.loads(Path(os.environ["ONWARD_REQUEST_FILE"]).read_text())
inputs = {name: Path(path) for name, path in request["inputs"].items()}
what = inputs["Image"].read_text().strip()
print("asked to:", what, flush=True)
if what == "memory":
    held = [bytearray(50 << 20) for _ in range(40)]
if what == "sleep":
    time.sleep(600)
if what == "crash":
    raise ValueError("a page without staves")
step = -1
if run.resume():
    step = int((Path(run.resume()) / "step").read_text())
while what == "long" and step < 40:
    step += 1
    run.log({"loss": 1 / (step + 1)}, step=step)
    time.sleep(0.5)
    if step % 10 == 9:
        with run.checkpoint(step) as folder:
            (folder / "step").write_text(str(step))
models = {"Background Model": "Background"} | {f"Model {name[-1]}": name for name in inputs if "Layer" in name}
for model, source in models.items():
    part = Path(os.environ["ONWARD_ARTIFACTS_DIR"]) / f"{model}.hdf5.part"
    part.write_bytes(b"learnt from " + inputs[source].read_bytes())
    part.rename(part.with_suffix(""))
run.finish()
"""


@dataclass(kw_only=True)
class Site:
    """Alice's gateway, the broker and the application it serves."""

    person: Person
    broker: RabbitMQ
    rodan: Rodan
    process: subprocess.Popen[bytes]

    def restart(self, meanwhile: Callable[[], object], **login: str) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        meanwhile()
        self.process = start(self.person, self.rodan, **login)

    @property
    def log(self) -> str:
        return (self.person.home / "gateway.log").read_text()

    def request(
        self, producer: OldProducer, image: str, settings: Mapping[str, object] | None = None, *, layers: tuple[int, ...] = (0, 1)
    ) -> str:
        inputs = {"Image": f"/uploads/{image}", "Background": "/uploads/background"}
        inputs |= {f"rgba PNG - Layer {n}": f"/uploads/layer-{n}" for n in layers}
        return producer.send(inputs, {"Maximum memory (MB)": 300, "Maximum time (D-HH:MM)": "0-00:05", **(settings or {})})

    def runs(self) -> list[Path]:
        return sorted(path for path in (self.person.home / "runs").glob("20*") if (path / "params" / "spec.json").exists())

    def job_of(self, correlation: str) -> str:
        """The job that serves a request, once it trains."""
        give_up = time.monotonic() + 120
        while time.monotonic() < give_up:
            for run in self.runs():
                if correlation in (run / "params" / "spec.json").read_text():
                    events = [
                        json.loads(line) for path in sorted((run / "journal").glob("*.jsonl")) for line in path.read_text().splitlines()
                    ]
                    if any(event["kind"] == "started" for event in events):
                        return str(next(event["job"] for event in events if event["kind"] == "claimed"))
            time.sleep(0.3)
        pytest.fail(f"no job for {correlation}: {self.log}")


@pytest.fixture(scope="module")
def broker() -> Iterator[RabbitMQ]:
    with broker_of_its_own() as broker:
        yield broker


@pytest.fixture
def site(alice: Person, broker: RabbitMQ, tmp_path: Path) -> Iterator[Site]:
    for what in ("ok", "memory", "sleep", "crash", "long"):
        (tmp_path / what).write_text(what)
    for name in ("background", *(f"layer-{n}" for n in range(10))):
        (tmp_path / name).write_text(f"pixels of {name}")
    recipe = alice.home / "recipes" / "mock"
    recipe.mkdir(parents=True)
    (recipe / "recipe.yaml").write_text(RECIPE.replace("PYTHON", alice.python))
    (recipe / "train.py").write_text(TRAIN)
    password = alice.write("password", broker.password)
    password.chmod(0o600)
    subprocess.run(["chown", "-R", "alice", str(alice.home / "recipes")], check=True)
    with Rodan(tmp_path) as rodan:
        alice.environment["ONWARD_STATE_DIR"] = str(alice.home / "state")
        alice.environment["ONWARD_SETTINGS"] = str(
            alice.write(
                "settings.toml",
                f'cluster = "slurm"\n[gateway]\nurl = "{broker.url()}"\nuser = "{USER}"\npassword-file = "{password}"\n'
                f'recipes = "{alice.home / "recipes"}"\n[gateway.v1]\nenabled = true\nrecipe = "mock"\nrodan = "{rodan.url}"\n',
            )
        )
        made = Site(person=alice, broker=broker, rodan=rodan, process=start(alice, rodan))
        try:
            yield made
        finally:
            made.process.send_signal(signal.SIGTERM)
            made.process.wait(30)


def start(alice: Person, rodan: Rodan, **login: str) -> subprocess.Popen[bytes]:
    account = pwd.getpwnam("alice")
    env = {**alice.environment, "RODAN_USERNAME": rodan.username, "RODAN_PASSWORD": rodan.password, **login}
    who: dict[str, Any] = {"user": "alice", "group": account.pw_gid, "extra_groups": []}
    log = alice.write("gateway.log", "")
    with log.open("ab") as out:
        return subprocess.Popen([alice.python, "-m", "onward", "gateway"], cwd=alice.home, env=env, stdout=out, stderr=out, **who)


def models(reply: dict[str, Any]) -> dict[str, bytes]:
    assert "error" not in reply, reply
    return {name: base64.b64decode(text) for name, text in reply.items()}


def test_an_old_producer_gets_one_answer_for_every_way_its_training_can_end(site: Site) -> None:
    with OldProducer(site.broker) as producer:
        good = site.request(producer, "ok")
        gap = site.request(producer, "ok", layers=(0, 3))
        bad = site.request(producer, "ok", {"Patch height": 1, "CPUs": "many"})
        absent = site.request(producer, "nowhere")
        memory = site.request(producer, "memory", {"Maximum memory (MB)": 100})
        late = site.request(producer, "sleep", {"Maximum time (D-HH:MM)": "0-00:01"})
        crash = site.request(producer, "crash")
        cancelled = site.request(producer, "sleep")
        site.person.run("scancel", site.job_of(cancelled))

        assert models(producer.reply(good, timeout=120)) == {
            "Background Model": b"learnt from pixels of background",
            "Model 0": b"learnt from pixels of layer-0",
            "Model 1": b"learnt from pixels of layer-1",
        }
        assert sorted(models(producer.reply(gap, timeout=120))) == ["Background Model", "Model 0", "Model 3"]
        refused = producer.reply(bad)["error"]
        assert "Patch height" in refused and "CPUs" in refused
        assert "404" in producer.reply(absent, timeout=120)["error"]
        assert "memory" in producer.reply(memory, timeout=180)["error"]
        assert "a page without staves" in producer.reply(crash, timeout=180)["error"]
        assert "cancelled" in producer.reply(cancelled, timeout=180)["error"]
        assert "time" in producer.reply(late, timeout=300)["error"]
        assert producer.silence(seconds=2.0), "nobody is answered twice"
    assert len(site.runs()) == 6, "one run for each request that was taken; the page that is nowhere was looked for before"


@pytest.mark.takes("nodes")
def test_a_node_that_dies_costs_the_sender_nothing_but_time(site: Site, bed: SlurmBed) -> None:
    recipe = site.person.home / "recipes" / "mock" / "recipe.yaml"
    recipe.write_text(f"{recipe.read_text().rstrip()}\n  resources: {{partition: gpu, exclude: g3}}\n")
    with OldProducer(site.broker) as producer:
        asked = site.request(producer, "long")
        job = site.job_of(asked)
        run = next(run for run in site.runs() if asked in (run / "params" / "spec.json").read_text())
        give_up = time.monotonic() + 120
        while not list((run / "results" / "checkpoints").glob("leg-*")):
            assert time.monotonic() < give_up
            time.sleep(0.3)
        node = site.person.run("squeue", "-h", "-j", job, "-o", "%N").stdout.strip()
        bed.crash(node)
        try:
            assert sorted(models(producer.reply(asked, timeout=400))) == ["Background Model", "Model 0", "Model 1"]
        finally:
            bed.heal(node)
        assert producer.silence(seconds=2.0) and len(site.runs()) == 1


def test_a_wrong_login_is_answered_and_no_secret_is_told_anywhere(site: Site) -> None:
    site.restart(lambda: None, RODAN_PASSWORD="not-this-one")
    with OldProducer(site.broker) as producer:
        error = producer.reply(site.request(producer, "ok"), timeout=60)["error"]
        assert "log" in error.lower() and "not-this-one" not in error
    site.restart(lambda: None)
    with OldProducer(site.broker) as producer:
        asked = site.request(producer, "sleep")
        site.job_of(asked)
        secrets = {site.rodan.password, site.rodan.token, site.broker.password, "not-this-one"}
        assert_nowhere(site, secrets)
        site.person.onward("cancel", str(site.runs()[-1]))
        assert "cancelled" in producer.reply(asked, timeout=120)["error"]
        assert_nowhere(site, secrets)


def test_models_of_a_real_training_come_back_and_can_be_loaded(site: Site, tmp_path: Path) -> None:
    """The recipe that comes with Onward, as an application of 2020 asks for it."""
    recipe = REPO / "src" / "onward" / "contrib" / "patchwise"
    subprocess.run([sys.executable, str(recipe / "pages.py"), "--out", str(tmp_path / "folio"), "--without", "text"], check=True)
    settings = Path(site.person.environment["ONWARD_SETTINGS"])
    site.restart(lambda: settings.write_text(settings.read_text().replace('recipe = "mock"', 'recipe = "patchwise"')))
    names = {"Image": "page", "Background": "background", "rgba PNG - Layer 0": "notes", "rgba PNG - Layer 1": "staff"}
    asked: dict[str, object] = {
        "Maximum number of training epochs": 1,
        "Maximum number of samples per label": 100,
        "Patch height": 64,
        "Patch width": 64,
    }
    asked |= {"Maximum time (D-HH:MM)": "0-00:10", "Maximum memory (MB)": 2000, "CPUs": 1, "Slurm Notification Email": ""}
    with OldProducer(site.broker) as producer:
        sent = producer.send({name: f"/uploads/folio/{file}.png" for name, file in names.items()}, asked)
        back = models(producer.reply(sent, timeout=500))
    assert sorted(back) == ["Background Model", "Model 0", "Model 1"]
    for name, data in back.items():
        (tmp_path / f"{name}.hdf5").write_bytes(data)
        loading = f"import keras; print(keras.saving.load_model({str(tmp_path / f'{name}.hdf5')!r}).input_shape)"
        shown = subprocess.run(
            [sys.executable, "-c", loading], capture_output=True, text=True, env={**os.environ, "KERAS_BACKEND": "torch"}, check=False
        )
        assert "64" in shown.stdout or "None" in shown.stdout, shown.stderr


def assert_nowhere(site: Site, secrets: set[str]) -> None:
    """In no log, job script, argument, variable of another's process, or file that others may read."""
    for folder, _, names in os.walk(site.person.home):
        for name in names:
            path = Path(folder, name)
            if path.is_symlink() or not path.is_file():
                continue
            text = path.read_bytes()
            for secret in secrets:
                if secret.encode() in text:
                    assert path.stat().st_mode & 0o077 == 0, f"{path} has a secret, and others may read it"
                    assert path.suffix not in (".log", ".sh", ".out", ".err"), f"{path} has a secret"
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:
            continue
        assert not any(secret.encode() in words for secret in secrets), f"in the arguments of {words!r}"
