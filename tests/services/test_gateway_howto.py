"""The page about the gateway, followed to the letter: its users, settings, recipe and commands, at a real broker, to the answer."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from beds.rabbitmq import USER, RabbitMQ
from beds.waiting import until
from onward.sender import Sender
from tests.servers import Running

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "gateway.md").read_text()
PATIENCE = 120.0


def block(kind: str, number: int = 0) -> str:
    return str(re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)[number])


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def application(folder: Path) -> Iterator[str]:
    """Serves the files of a folder."""
    (folder / "text.txt").write_text("to be or not to be\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


class Site:
    """A machine that was set up as the page says, and one of a sender who knows nothing but the broker."""

    def __init__(self, folder: Path, broker: RabbitMQ, vhost: str, host: str) -> None:
        self.folder, self.broker, self.vhost, self.host = folder, broker, vhost, host
        self.passwords = {"gateway": secrets.token_hex(8), "scribe": secrets.token_hex(8)}
        recipe = folder / "recipes" / "count"
        recipe.mkdir(parents=True)
        (recipe / "recipe.yaml").write_text(block("yaml"))
        (recipe / "count.py").write_text(block("python"))
        (folder / "password").write_text(self.passwords["gateway"])
        (folder / "password").chmod(0o600)
        (folder / "gateway.toml").write_text(self.settings())
        (folder / "sender.toml").write_text("")

    def settings(self) -> str:
        changed = {
            "amqps://broker.lab.org/": self.broker.url(self.vhost),
            "/home/ada/.config/onward/broker-password": str(self.folder / "password"),
            "/home/ada/recipes": str(self.folder / "recipes"),
            "scribe.lab.org": self.host,
        }
        text = block("toml")
        for old, new in changed.items():
            assert old in text
            text = text.replace(old, new)
        return 'cluster = "local"\n' + text.replace('server = "https://onward.lab.org"', "# server")

    def make_users(self) -> None:
        """By the page's own commands, for this test's virtual host."""
        commands = [shlex.split(line)[1:] for line in PAGE.splitlines() if line.startswith("$ rabbitmqctl")]
        names = {name: f"{name}-{self.vhost}" for name in self.passwords}  # another test may have the same
        for verb, name, *rest in ((words[1], words[2], *words[3:]) for words in commands):
            if verb == "add_user":
                self.broker.control("add_user", names[name], self.passwords[name])
            else:
                self.broker.control(verb, "-p", self.vhost, names[name], *rest)

    def env(self, who: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("ONWARD_", "RABBITMQ_"))}
        own = {"ONWARD_SETTINGS": str(self.folder / f"{'gateway' if who == 'gateway' else 'sender'}.toml")}
        places = {"ONWARD_ROOT": str(self.folder / "runs"), "ONWARD_STATE_DIR": str(self.folder / f"state-{who}")}
        login = {"RABBITMQ_USER": f"{who}-{self.vhost}", "RABBITMQ_PASSWORD": self.passwords[who]} if who == "scribe" else {}
        return {**kept, **own, **places, **login, "NO_COLOR": "1"}

    def onward(self, who: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "onward", *words]
        return subprocess.run(command, env=self.env(who), cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, check=False)

    @contextmanager
    def gateway(self) -> Iterator[Path]:
        """While it runs: what it says."""
        said = self.folder / "gateway.log"
        with said.open("wb") as log:
            command = [sys.executable, "-m", "onward", "gateway"]
            process = subprocess.Popen(command, env=self.env("gateway"), cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            until = time.monotonic() + PATIENCE
            while "listening at" not in said.read_text():
                assert process.poll() is None and time.monotonic() < until, said.read_text()
                time.sleep(0.05)
            yield said
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0, said.read_text()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture
def site(tmp_path: Path, broker: RabbitMQ, vhost: str) -> Iterator[Site]:
    files = tmp_path / "files"
    files.mkdir()
    with application(files) as host:
        yield Site(tmp_path, broker, vhost, host)


def test_the_page_leads_from_an_empty_broker_to_an_answer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.make_users()
    text = site.folder / "gateway.toml"
    text.write_text(text.read_text().replace('user = "gateway"', f'user = "gateway-{site.vhost}"'))
    declared = site.onward("gateway", "gateway", "declare")
    assert declared.returncode == 0, declared.stderr
    url = f"http://{site.host}/text.txt"
    with site.gateway() as said:
        asked = next(line for line in PAGE.splitlines() if line.startswith("$ onward request count"))
        words = shlex.split(asked.replace("https://scribe.lab.org/text.txt", url))[2:]
        done = site.onward("scribe", *words, "--broker", site.broker.url(site.vhost))
        assert (done.returncode, done.stdout) == (0, "counted/Counts.json\n"), f"{done.stderr}\n{said.read_text()}"
        assert json.loads((site.folder / "counted" / "Counts.json").read_text()) == {"to": 2, "be": 2, "or": 1, "not": 1}
        assert "done: " in done.stderr
        monkeypatch.chdir(site.folder)
        monkeypatch.setenv("ONWARD_SETTINGS", str(site.folder / "sender.toml"))
        snippet = block("python", 1).replace("amqps://broker.lab.org/", site.broker.url(site.vhost)).replace('user="scribe"', "user=user")
        names = {"password": site.passwords["scribe"], "user": f"scribe-{site.vhost}", "Path": Path, "print": lambda *_: None}
        (site.folder / "counted" / "Counts.json").unlink()
        exec(snippet.replace("https://scribe.lab.org/text.txt", url), names)
        assert (site.folder / "counted" / "Counts.json").exists()
        assert names["answer"].metrics == {"words": 6.0}  # type: ignore[attr-defined]
    heard = said.read_text()
    assert [name for name, password in site.passwords.items() if password in heard] == []


def test_a_result_that_is_too_large_for_a_reply_is_fetched_from_the_server_by_its_address(site: Site, broker: RabbitMQ) -> None:
    (site.folder / "files" / "text.txt").write_text(" ".join(f"word-{number}" for number in range(80_000)))
    own = site.settings().replace('user = "gateway"', f'user = "{USER}"\ninline = "1M"')
    (site.folder / "password").write_text(broker.password)
    with Running(site.folder / "up", "--gateway", settings=own) as server:
        assert until(lambda: "listening at amqp" in server.log, timeout=PATIENCE)  # its pages are there sooner than its queues
        sent = Sender(broker.url(site.vhost), user=USER, password=broker.password).request(
            "count", {"Text": f"http://{site.host}/text.txt"}
        )
        answer = sent.wait(keep=lambda answer: answer.save(site.folder), timeout=PATIENCE)
    assert (answer.done, answer.results["Counts"].data) == (True, None), answer
    assert len(json.loads((site.folder / "Counts.json").read_text())) == 80_000
