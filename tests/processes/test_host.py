from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.supervisor.telemetry import host
from onward.supervisor.telemetry.host import HostSampler, MemoryWatch, session_processes
from tests.benches import until

FAMILY = """
import os, subprocess, sys, time
own_session = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, start_new_session=True)
same_session = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
print(os.getpid(), own_session.pid, same_session.pid, flush=True)
ballast = bytearray(64 << 20)
sys.stdin.readline()
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
print("worked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def family() -> Iterator[subprocess.Popen[str]]:
    """A training with two children, one of them in a session of its own; all leave when their input closes."""
    process = subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    yield process
    process.kill()
    process.communicate()


def test_a_session_is_its_members_and_all_they_started(family: subprocess.Popen[str]) -> None:
    assert family.stdout
    pids = sorted(int(word) for word in family.stdout.readline().split())
    assert session_processes(family.pid) == pids
    assert os.getpid() not in pids


def test_of_several_sessions_each_process_counts_once(family: subprocess.Popen[str]) -> None:
    assert family.stdout
    first, own_session, same_session = (int(word) for word in family.stdout.readline().split())
    assert session_processes(own_session) == [own_session]
    assert session_processes(own_session, first) == sorted([first, own_session, same_session])
    assert session_processes() == []


def test_the_trainings_memory_and_work_are_sampled(family: subprocess.Popen[str], tmp_path: Path) -> None:
    assert family.stdout and family.stdin
    family.stdout.readline()
    sampler = HostSampler(sessions=lambda: [family.pid], disk=tmp_path)
    first = sampler.sample(100.0)
    assert "system/cpu_percent" not in first, "use is told over the time since the last sample"
    family.stdin.write("work\n")
    family.stdin.flush()
    assert family.stdout.readline() == "worked\n"
    second = sampler.sample(101.0)
    assert second["system/cpu_percent"] >= 25
    assert second["system/rss_mib"] >= 64 and sampler.peak_rss >= 64
    assert second["system/host_mem_total_mib"] > second["system/host_mem_used_mib"] > 0
    assert second["system/disk_free_mib"] > 0 and second["system/load_1m"] >= 0


def test_a_training_that_has_gone_leaves_its_peak_and_no_negative_work(family: subprocess.Popen[str], tmp_path: Path) -> None:
    assert family.stdout
    pids = [int(word) for word in family.stdout.readline().split()]
    sampler = HostSampler(sessions=lambda: [family.pid], disk=tmp_path)
    until(lambda: sampler.sample(100.0)["system/rss_mib"] >= 64, what="the ballast")
    family.kill()
    family.wait()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), what="the family's death")
    last = sampler.sample(200.0)
    assert (last["system/rss_mib"], last["system/cpu_percent"]) == (0.0, 0.0)
    assert sampler.peak_rss >= 64


def test_a_figure_that_cannot_be_had_is_left_out(tmp_path: Path) -> None:
    values = HostSampler(sessions=list, disk=tmp_path / "nowhere").sample(1.0)
    assert "system/disk_free_mib" not in values
    assert values["system/rss_mib"] == 0.0


# ── killed for memory ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(("events", "peak"), [("memory.events", "memory.peak"), ("memory.oom_control", "memory.max_usage_in_bytes")])
def test_a_kill_for_memory_is_known_by_the_cgroups_counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: str, peak: str) -> None:
    monkeypatch.setattr(host, "_memory_cgroups", lambda: [tmp_path])
    (tmp_path / events).write_text("oom 3\noom_kill 1\noom_kill_disable 0\n")
    (tmp_path / peak).write_text(f"{300 << 20}\n")
    watch = MemoryWatch()
    assert not watch.killed(), "what was killed before is no matter of this leg"
    (tmp_path / events).write_text("oom 4\noom_kill 2\noom_kill_disable 0\n")
    assert watch.killed()
    assert watch.peak() == 300


def test_a_job_without_a_cgroup_of_its_own_knows_of_no_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_memory_cgroups", list)
    watch = MemoryWatch()
    assert not watch.killed() and watch.peak() is None


def test_here_and_now_nothing_was_killed() -> None:
    assert not MemoryWatch().killed()


def test_memory_is_told_of_the_whole_job_rather_than_of_our_own_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step, job = tmp_path / "step_0", tmp_path
    step.mkdir()
    (step / "memory.stat").write_text(f"anon {1 << 20}\nfile 0\n")
    (job / "memory.stat").write_text(f"anon {900 << 20}\nfile 0\n")
    monkeypatch.setattr(host, "_memory_cgroups", lambda: [step, job])
    assert HostSampler(sessions=list, disk=tmp_path).sample(1.0)["system/mem_anon_mib"] == 900.0


@pytest.mark.parametrize("stat", ["anon 104857600\nfile 52428800\nkernel 1\n", "cache 1\ntotal_rss 104857600\ntotal_cache 52428800\n"])
def test_a_jobs_own_memory_and_its_page_cache_are_told_apart(tmp_path: Path, stat: str) -> None:
    (tmp_path / "memory.stat").write_text(stat)
    assert host._memory_split([tmp_path / "none", tmp_path]) == {"system/mem_anon_mib": 100.0, "system/mem_cache_mib": 50.0}
    (tmp_path / "memory.stat").write_text("torn")
    assert host._memory_split([tmp_path]) == {}
