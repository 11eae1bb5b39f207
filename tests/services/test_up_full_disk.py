"""A disk that fills up under load: nothing more is acknowledged, everybody is told why, and it goes on by itself when there is room."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from tests.disks import small_disk
from tests.http_load import Load, wait_until
from tests.servers import Running


def fill(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)


def test_a_full_disk_is_a_503_with_its_reason_until_there_is_room_and_costs_no_acknowledged_point(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=16 << 10) as disk, Running(tmp_path / "server", db=str(disk / "tracker.db")) as server:
        token = server.token()
        runs = [server.json("POST", "/experiments/e/runs", token, {"slurm_job_id": number})["run_id"] for number in range(2)]
        assert server.ask("GET", "/readyz", token=token)[0] == 200
        with Load(server, token, runs) as load:
            load.wait_for(20)
            for _ in range(2):
                before = load.refused
                wait_until(lambda before=before: fill(disk / "filler") or load.refused > before + 3)  # type: ignore[misc, func-returns-value]
                status, headers, body = server.ask("GET", "/readyz", token=token)
                assert (status, "retry-after" in headers) == (503, True)
                assert "no room" in json.loads(body)["detail"]
                assert "make room" in json.loads(body)["hint"]
                status, _, body = server.ask("POST", "/api/2.0/mlflow/runs/log-metric", token=token, json=metric(runs[0]))
                assert (status, json.loads(body)["error_code"]) == (503, "TEMPORARILY_UNAVAILABLE")  # which its client tries again
                assert server.ask("PUT", f"/api/v1/runs/{runs[0]}/artifacts/a.bin", token=token, body=b"x" * 100_000)[0] == 503
                assert server.ask("GET", f"/api/v1/runs/{runs[0]}", token=token)[0] == 200
                (disk / "filler").unlink()
                load.wait_for(20)
                wait_until(lambda: server.ask("GET", "/readyz", token=token)[0] == 200)
        load.check()
        data = [json.loads(line) for line in server.log.splitlines() if '"store"' in line]
        assert [line["level"] for line in data][:2] == ["error", "warning"]
        assert len(data) < 6  # a line a minute, not one a request
        assert "Traceback" not in server.log


def metric(run: str) -> dict[str, object]:
    return {"run_id": run, "key": "other", "value": 1.0, "timestamp": 1, "step": 0}
