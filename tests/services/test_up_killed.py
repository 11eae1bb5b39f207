"""`onward up` killed at any moment, its database stopped at once, its twin taking over: every acknowledged point is there, exactly once."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from beds.postgres import Postgres
from tests.http_load import Load, wait_until
from tests.sandbox import Sandbox
from tests.servers import Running

KILLS = 50


def begin(server: Running, token: str, count: int = 4) -> list[str]:
    return [server.json("POST", "/experiments/e/runs", token, {"slurm_job_id": number})["run_id"] for number in range(count)]


@pytest.mark.slow
def test_killed_fifty_times_under_load_every_acknowledged_point_is_there_once(tmp_path: Path) -> None:
    chance = random.Random(50)
    with Running(tmp_path) as server:
        token = server.token()
        with Load(server, token, begin(server, token)) as load:
            for _ in range(KILLS):
                if chance.random() < 0.7:
                    server.wait_until_ready()
                    load.wait_for(chance.choice((1, 10, 40)))
                time.sleep(chance.uniform(0, 0.3))  # at work, or still starting
                server.kill()
                server.launch()
            server.wait_until_ready()
            load.wait_for(100)
        assert load.check() > KILLS


@pytest.mark.slow
def test_a_server_on_postgresql_is_killed_under_load(address: str, tmp_path: Path) -> None:
    with Running(tmp_path, db=address) as server:
        token = server.token()
        with Load(server, token, begin(server, token)) as load:
            for _ in range(5):
                load.wait_for(40)
                server.kill()
                server.start()
            load.wait_for(40)
        load.check()


@pytest.mark.slow
def test_postgresql_that_stops_at_once_under_load_is_a_503_until_it_is_back(own_postgres: Postgres, tmp_path: Path) -> None:
    with Running(tmp_path, db=own_postgres.create("onward")) as server:
        token = server.token()
        with Load(server, token, begin(server, token)) as load:
            for _ in range(4):
                load.wait_for(40)
                own_postgres.stop(how="immediate")
                before = load.refused
                wait_until(lambda before=before: load.refused > before)  # type: ignore[misc]
                assert server.ask("GET", "/readyz", token=token)[0] == 503
                assert server.ask("GET", "/healthz", token=token)[0] == 200
                own_postgres.start()
            load.wait_for(40)
        load.check()
        assert server.ask("GET", "/readyz", token=token)[0] == 200
        assert "Traceback" not in server.log


def test_of_two_servers_one_tends_and_the_other_takes_over_when_it_is_killed(address: str, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "desk")
    files = ("--files", str(tmp_path / "files"))
    with Running(tmp_path / "one", *files, db=address, root=sandbox.root) as one:
        token = one.token()

        def tends(server: Running) -> bool:
            server.json("POST", "/webhooks/slurm", token, {"job_id": "1"})  # look soon
            return "onward_tended_age_seconds" in server.ask("GET", "/metrics", token=token)[2].decode()

        wait_until(lambda: tends(one))
        with Running(tmp_path / "two", *files, db=address, root=sandbox.root) as two:
            run = one.json("POST", "/experiments/e/runs", token, {})["run_id"]
            two.json("POST", f"/runs/{run}/metrics", token, {"name": "loss", "value": 1, "step": 0})
            assert one.json("GET", f"/api/v1/runs/{run}/metrics", token)["metrics"]["loss"]["value"] == 1
            assert two.ask("PUT", f"/api/v1/runs/{run}/artifacts/a.txt", token=token, body=b"x")[0] == 201
            assert one.ask("GET", f"/api/v1/runs/{run}/artifacts/a.txt", token=token)[2] == b"x"
            first = sandbox.play("first").spec.id
            wait_until(lambda: two.ask("GET", f"/api/v1/runs/{first}", token=token)[0] == 200)  # the other read it
            assert not tends(two)
            one.kill()
            second = sandbox.play("second").spec.id
            wait_until(lambda: two.ask("GET", f"/api/v1/runs/{second}", token=token)[0] == 200)
            wait_until(lambda: tends(two))
