"""Many requests through a real gateway, whose processes are killed: who sends them, who counts the answers, who does the killing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError, UnroutableError

from beds.rabbitmq import USER, RabbitMQ
from onward.rundir.journal import read_spec
from onward.rundir.layout import runs_under

ANSWERS = "onward.reply.load"
REQUESTS = "onward.requests"

RECIPE = """
name: instant
recipe:
  title: Done at once
  settings: {Number: {type: int, min: 0, to: params.number}}
train:
  command: "true"
  params: {number: 0}
  resources: {mem: 50M, cpus-per-task: 1}
"""


@dataclass(kw_only=True)
class Site:
    """A gateway, and where it keeps things; its server too, where there is one."""

    folder: Path
    broker: RabbitMQ
    server: bool = False
    process: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        recipe = self.folder / "recipes" / "instant"
        recipe.mkdir(parents=True)
        (recipe / "recipe.yaml").write_text(RECIPE)
        (self.folder / "node").mkdir()
        password = self.folder / "password"
        password.touch(0o600)
        password.write_text(self.broker.password)
        (self.folder / "settings.toml").write_text(
            f'cluster = "local"\n[clusters.local]\ncpus = {os.cpu_count()}\n[gateway]\nurl = "{self.broker.url()}"\nuser = "{USER}"\n'
            f'password-file = "{password}"\nrecipes = "{self.folder / "recipes"}"\nquota = 0\nqueue = 0\n'
        )

    @property
    def env(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("ONWARD_", "RABBITMQ_", "RODAN_"))}
        own = {name: str(self.folder / part) for name, part in (("SETTINGS", "settings.toml"), ("STATE_DIR", "state"), ("ROOT", "runs"))}
        return {**kept, **{f"ONWARD_{name}": value for name, value in own.items()}, "TMPDIR": str(self.folder / "node")}

    def start(self) -> None:
        for name, words in self._commands().items():
            if name not in self.process or self.process[name].poll() is not None:
                with (self.folder / f"{name}.log").open("ab") as log:
                    command = [sys.executable, "-m", "onward", *words]
                    self.process[name] = subprocess.Popen(command, env=self.env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def _commands(self) -> dict[str, tuple[str, ...]]:
        server = {"server": ("up", "--port", "0")} if self.server else {}
        return {"gateway": ("gateway",), **server}

    def kill(self, name: str) -> None:
        self.process[name].kill()
        self.process[name].wait()

    def end(self) -> None:
        for process in self.process.values():
            process.terminate()
        for process in self.process.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def leave(self) -> None:
        """End the jobs that nobody waits for any more, and the keeper of their queue."""
        state = str(self.folder / "state").encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                text = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
                if state in text and int(process.name) != os.getpid():
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:
                continue

    def log(self, name: str = "gateway") -> str:
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def runs(self) -> Counter[str]:
        """How many runs each request has."""
        return Counter(read_spec(run).request or "" for run in runs_under(self.folder / "runs"))


class Client:
    """An application: it publishes until the broker has confirmed, and counts answers until all are there."""

    def __init__(self, broker: RabbitMQ) -> None:
        self._broker = broker
        self._connection: pika.BlockingConnection | None = None
        self._channel: BlockingChannel | None = None
        self.answers: dict[str, set[str]] = {}  # request → message ids of its terminal answers
        self.states: Counter[str] = Counter()
        self.published: dict[str, float] = {}

    def channel(self) -> BlockingChannel:
        while self._channel is None or not self._channel.is_open:
            try:
                login = pika.PlainCredentials(USER, self._broker.password)
                where = pika.ConnectionParameters(host="127.0.0.1", port=self._broker.ports.plain, credentials=login, heartbeat=0)
                self._connection = pika.BlockingConnection(where)
                self._channel = self._connection.channel()
                self._channel.confirm_delivery()
                self._channel.queue_declare(ANSWERS, durable=True, arguments={"x-queue-type": "quorum"})
            except (AMQPError, OSError):
                self._channel = None
                time.sleep(0.2)
        return self._channel

    def send(self, number: int) -> None:
        """Until it is confirmed; twice is once."""
        id = f"load-{number}"
        body = json.dumps({"id": id, "recipe": "instant", "settings": {"Number": number}}).encode()
        answer = pika.BasicProperties(reply_to=ANSWERS, correlation_id=id, message_id=id, delivery_mode=2, content_type="application/json")
        while True:
            try:
                self.channel().basic_publish("", REQUESTS, body, answer, mandatory=True)
            except UnroutableError:  # the gateway has not made its queues yet
                time.sleep(0.2)
                continue
            except (AMQPError, OSError):
                self._channel = None
                continue
            self.published[id] = time.time()
            return

    def collect(self, *, within: float = 0.0) -> None:
        """Take what is there, and what comes within so many seconds."""
        give_up = time.monotonic() + within
        while True:
            try:
                method, _, body = self.channel().basic_get(ANSWERS)
                if method is None or body is None:
                    if time.monotonic() >= give_up:
                        return
                    time.sleep(0.05)
                    continue
                self._note(json.loads(body), str(_.message_id if _ else ""))
                self.channel().basic_ack(method.delivery_tag or 0)
            except (AMQPError, OSError):
                self._channel = None

    def _note(self, body: dict[str, Any], message: str) -> None:
        if body["kind"] == "reply":
            known = self.answers.setdefault(body["id"], set())
            if not known:
                self.states[body["state"]] += 1
            known.add(message)

    def close(self) -> None:
        if self._connection and self._connection.is_open:
            self._connection.close()


class Killer(threading.Thread):
    """Ends one of broker, gateway and server at random moments, and starts it again."""

    def __init__(self, site: Site, *, seed: int, every: tuple[float, float]) -> None:
        super().__init__()
        self._site, self._chance, self._every = site, random.Random(seed), every
        self._stopping = threading.Event()
        self.kills: Counter[str] = Counter()

    def run(self) -> None:
        while not self._stopping.wait(self._chance.uniform(*self._every)):
            victim = self._chance.choice(["broker", *self._site.process])
            if victim == "broker":
                self._site.broker.stop(hard=True)
                self._site.broker.start()
            else:
                self._site.kill(victim)
            self._site.start()
            self.kills[victim] += 1

    def stop(self) -> None:
        self._stopping.set()
        self.join()
