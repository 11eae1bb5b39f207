"""Requests through broker, gateway and server that are killed with -9 again and again: each has one run and one answer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.brokers import broker_of_its_own
from tests.gateway_load import Client, Killer, Site

COUNT = 60
KILLS = 6  # spread over the requests


@pytest.mark.slow
def test_every_request_has_one_run_and_one_answer_whatever_is_killed(tmp_path: Path, seed: int) -> None:
    with broker_of_its_own() as broker:
        site, client = Site(folder=tmp_path, broker=broker, server=True), Client(broker)
        site.start()
        killer = Killer(site, seed=seed, every=(2.0, 5.0))
        killer.start()
        try:
            for number in range(COUNT):
                client.send(number)
                client.collect()
                while sum(killer.kills.values()) < number * KILLS // COUNT:
                    client.collect(within=0.2)
            killer.stop()
            give_up = time.monotonic() + 400
            while len(client.answers) < COUNT and time.monotonic() < give_up:
                client.collect(within=1.0)
        finally:
            killer.stop()
            site.start()
        client.collect(within=10.0)
        client.close()
        site.end()
    wanted = {f"load-{number}" for number in range(COUNT)}
    assert set(client.answers) == wanted, (seed, killer.kills, wanted - set(client.answers), site.log()[-3000:])
    assert all(len(ids) == 1 for ids in client.answers.values()), "an answer that comes again is the same message"
    assert client.states == {"done": COUNT}, (seed, client.states)
    assert site.runs() == dict.fromkeys(wanted, 1), seed
