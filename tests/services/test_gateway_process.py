"""`onward gateway` as people start it: a process, a broker, a recipe on the local scheduler; ended by a signal, or killed."""

from __future__ import annotations

import base64
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from beds.postgres import Postgres
from beds.rabbitmq import RabbitMQ
from beds.waiting import until
from onward.tracker.requests.store import Requests
from tests.gateway_old import OldProducer
from tests.gateway_site import PATIENCE, GatewaySite
from tests.servers import Running


@pytest.fixture
def site(tmp_path: Path, broker: RabbitMQ, vhost: str) -> Iterator[GatewaySite]:
    yield GatewaySite(tmp_path, broker, vhost)


def test_one_that_is_killed_and_one_that_is_stopped_leave_every_request_to_the_next(
    site: GatewaySite, broker: RabbitMQ, vhost: str
) -> None:
    process = site.start()
    try:
        with OldProducer(broker, vhost) as old:
            first = old.send({}, {"word": "first"})
            assert until(lambda: "is accepted" in site.log, timeout=PATIENCE)
            process.kill()
            process.wait()
            second = old.send({}, {"word": "second"})
            process = site.start()

            assert old.reply(first, timeout=PATIENCE) == {"Said": "RklSU1Q=\n"}
            assert old.reply(second, timeout=PATIENCE) == {"Said": "U0VDT05E\n"}
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
            assert old.silence()
    finally:
        process.kill()
        process.wait()
    runs = [path for path in (site.folder / "runs").glob("20*") if (path / "params" / "spec.json").exists()]
    assert len(runs) == 2
    assert "Traceback" not in site.log
    assert broker.password not in site.texts(), "not in a log, a run's folder, a store, or what the training was given"


def test_a_request_whose_gateway_died_when_its_job_was_queued_has_one_run_and_one_answer_though_another_has_its_own_store(
    site: GatewaySite, broker: RabbitMQ, vhost: str
) -> None:
    def runs() -> list[Path]:
        return [path for path in (site.folder / "runs").glob("20*") if (path / "params" / "spec.json").exists()]

    def stores(name: str) -> tuple[str, str]:
        return "--db", str(site.folder / name / "onward.db")

    processes = [site.start(*stores("a"), dies=True)]
    try:
        with OldProducer(broker, vhost) as old:
            sent = old.send({}, {"word": "once"})
            assert processes[0].wait(PATIENCE) == -signal.SIGKILL
            assert len(runs()) == 1
            processes.append(site.start(*stores("b")))
            old.send({}, {"word": "once"}, correlation_id=sent)  # by whoever misses the answer
            assert old.reply(sent, timeout=PATIENCE) == {"Said": "T05DRQ==\n"}
            other = site.run(*stores("a"))
            assert other.returncode == 5, "both at once are refused"
            assert "a gateway with another store takes the requests of this virtual host" in other.stderr
            processes[1].kill()
            processes[1].wait()
            processes.append(site.start(*stores("a")))
            store = Requests.open(site.folder / "a" / "onward.requests.db", create=False)
            try:
                assert until(lambda: store.list()[0].outcome is not None, timeout=PATIENCE), site.log
            finally:
                store.close()
            assert old.silence()
    finally:
        for process in processes:
            process.kill()
            process.wait()
    (run,) = runs()
    assert len(list((run / "logs").glob("leg-*.out"))) == 1
    assert "Traceback" not in site.log


def test_two_gateways_that_share_one_postgresql_answer_each_request_once_also_when_one_of_them_is_killed(
    site: GatewaySite, broker: RabbitMQ, vhost: str, own_postgres: Postgres
) -> None:
    shared = ("--db", own_postgres.create("onward"))
    processes = [site.start(*shared), site.start(*shared)]
    try:
        with OldProducer(broker, vhost) as old:
            sent = [old.send({}, {"word": f"w{number}"}) for number in range(6)]
            assert until(lambda: "is accepted" in site.log, timeout=PATIENCE)
            processes[0].kill()
            processes[0].wait()
            answers = [old.reply(one, timeout=PATIENCE)["Said"] for one in sent]
            assert old.silence()
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert answers == [base64.encodebytes(f"W{number}".encode()).decode() for number in range(6)]
    assert "Traceback" not in site.log


def test_from_cron_it_takes_what_is_there_and_leaves(site: GatewaySite, broker: RabbitMQ, vhost: str) -> None:
    with OldProducer(broker, vhost) as old:
        sent = old.send({}, {})

        def answered_now() -> bool:
            assert site.run("--once").returncode == 0
            return not old.silence(seconds=0.1)

        assert until(answered_now, timeout=PATIENCE, pause=0.5)
        assert old.reply(sent) == {"Said": "SEVMTE8=\n"}


def test_the_queues_are_made_once_and_told_how_they_stand(site: GatewaySite, broker: RabbitMQ, vhost: str) -> None:
    made, again = site.run("declare"), site.run("declare")

    assert made.returncode == again.returncode == 0, made.stderr
    assert "queue onward.requests: made" in made.stdout and "queue hpc-jobs: made" in made.stdout
    assert again.stdout.count(": exists") == 6
    with OldProducer(broker, vhost) as old:
        old.channel.queue_delete("onward.control")
        old.channel.queue_declare("onward.control", durable=True)
    odd = site.run("declare")
    assert odd.returncode == 5
    assert "queue onward.control: exists, but not as Onward declares it: PRECONDITION_FAILED" in odd.stdout
    assert "existing queues are used as they are" in odd.stderr


def test_a_login_a_host_or_rights_that_are_missing_are_told_by_exit_code_and_sentence(
    site: GatewaySite, broker: RabbitMQ, vhost: str
) -> None:
    wrong = site.run(RABBITMQ_PASSWORD="hunter2")
    assert (wrong.returncode, "the broker refused the login" in wrong.stderr, "hunter2" in wrong.stderr) == (4, True, False)

    (site.folder / "none.toml").touch()
    nobody = site.run("declare", ONWARD_SETTINGS=f"{site.folder}/none.toml", RABBITMQ_HOST="")
    assert (nobody.returncode, "no broker is named" in nobody.stderr) == (2, True)

    broker.control("add_user", f"poor-{vhost}", "pass")
    broker.control("set_permissions", "-p", vhost, f"poor-{vhost}", "^$", ".*", ".*")
    poor = site.run(RABBITMQ_USER=f"poor-{vhost}", RABBITMQ_PASSWORD="pass")
    assert poor.returncode == 4
    assert "cannot be created or seen by this user" in poor.stderr and "ACCESS_REFUSED" in poor.stderr

    (site.folder / "settings.toml").write_text(site.settings.replace(f":{broker.ports.tls}", ":1"))
    away = site.run("declare")
    assert (away.returncode, "cannot be reached: Connection refused" in away.stderr) == (6, True)


def test_a_server_has_one_inside(site: GatewaySite, broker: RabbitMQ, vhost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in site.login.items():
        monkeypatch.setenv(name, value)
    with Running(site.folder / "server", "--gateway", settings=site.settings, root=site.folder / "runs") as server:
        with OldProducer(broker, vhost) as old:
            sent = old.send({}, {"word": "up"})
            assert old.reply(sent, timeout=PATIENCE) == {"Said": "VVA=\n"}
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
        stop = [json.loads(line)["message"] for line in server.log.splitlines() if line.startswith("{")][-1]
        assert stop == "the server has stopped"
    assert broker.password not in site.texts()
