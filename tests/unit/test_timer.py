"""`onward tend --install`: what it writes, that twice is once, and that it refuses where it cannot."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from onward.errors import NotOffered
from onward.operations.repair.timer import TendTimer
from onward.operations.repair.timer_hint import HINT, hint_once
from tests.sandbox import Sandbox

CRONTAB = """
if [ "$1" = -l ]; then cat {file} 2>/dev/null || {{ echo "no crontab for ada" >&2; exit 1; }}
else cp "$1" {file}; fi
"""


class Machine:
    """A home, and `systemctl` and `crontab` as small scripts, where the machine has them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.bin, self.table, self._calls = folder / "home", folder / "bin", folder / "table", folder / "calls"
        for made in (self.home, self.bin):
            made.mkdir()
        for name in ("sh", "cat", "cp"):
            (self.bin / name).symlink_to(f"/bin/{name}")
        monkeypatch.setenv("PATH", str(self.bin))
        self.env = {"HOME": str(self.home), "PATH": f"{self.bin}:/opt/slurm 100%/bin", "SLURM_CONF": "/etc/slurm.conf", "SECRET": "s3cret"}
        self.timer = TendTimer(env=self.env, folder=folder / "my project")
        self.units = self.home / ".config" / "systemd" / "user"
        self.timer.folder.mkdir()

    def with_systemd(self, *, linger: bool = True) -> Machine:
        self._program("systemctl", f"echo $* >> {self._calls}")
        self._program("loginctl", f"echo Linger={'yes' if linger else 'no'}")
        return self

    def with_cron(self) -> Machine:
        self._program("crontab", CRONTAB.format(file=self.table))
        return self

    def _program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_a_timer_is_written_and_enabled_and_its_files_are_named(machine: Machine) -> None:
    answer = machine.with_systemd().timer.install(cron=False)
    service, timer = machine.units / "onward-tend.service", machine.units / "onward-tend.timer"
    assert answer == [
        f"wrote {service}",
        f"wrote {timer}: onward tend every 10 minutes, in {machine.timer.folder}",
        "enabled onward-tend.timer",
    ]
    assert machine.calls == ["--user show-environment", "--user daemon-reload", "--user enable --now onward-tend.timer"]
    text = service.read_text()
    assert f"WorkingDirectory={machine.timer.folder}\n" in text
    assert 'Environment="SLURM_CONF=/etc/slurm.conf"\n' in text
    assert "/opt/slurm 100%%/bin" in text
    assert "s3cret" not in text
    assert machine.timer.installed


def test_installing_twice_is_installing_once(machine: Machine) -> None:
    machine.with_systemd()
    first = machine.timer.install(cron=False)
    before = {path.name: path.read_text() for path in machine.units.iterdir()}
    assert machine.timer.install(cron=False) == first
    assert {path.name: path.read_text() for path in machine.units.iterdir()} == before


def test_without_lingering_it_is_said_that_the_timer_ends_with_the_login(machine: Machine) -> None:
    assert "loginctl enable-linger" in machine.with_systemd(linger=False).timer.install(cron=False)[-1]


def test_uninstalling_removes_what_was_written_and_nothing_else(machine: Machine) -> None:
    machine.with_systemd().timer.install(cron=False)
    other = machine.units / "other.timer"
    other.write_text("")
    assert machine.timer.uninstall() == [f"removed {machine.units}/onward-tend.timer", f"removed {machine.units}/onward-tend.service"]
    assert list(machine.units.iterdir()) == [other]
    assert machine.calls[-2:] == ["--user disable --now onward-tend.timer", "--user daemon-reload"]
    assert machine.timer.uninstall() == []
    assert not machine.timer.installed


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_itself_takes_the_units(machine: Machine) -> None:
    analyze = shutil.which("systemd-analyze", path="/usr/bin:/bin")
    assert analyze
    machine.with_systemd().timer.install(cron=False)
    units = [str(machine.units / f"onward-tend.{kind}") for kind in ("service", "timer")]
    done = subprocess.run([analyze, "verify", "--man=no", *units], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if "onward-tend" in line] == []


def test_without_systemd_the_line_for_cron_is_printed_and_nothing_installed(machine: Machine) -> None:
    with pytest.raises(NotOffered, match="nothing was installed") as caught:
        machine.with_cron().timer.install(cron=False)
    assert machine.timer.line in caught.value.hint
    assert not machine.table.exists()
    assert not machine.units.exists()


def test_with_neither_it_refuses_and_says_what_else_there_is(machine: Machine) -> None:
    with pytest.raises(NotOffered, match="and there is no crontab") as caught:
        machine.timer.install(cron=False)
    assert "onward up" in caught.value.hint
    with pytest.raises(NotOffered, match="there is no crontab here"):
        machine.timer.install(cron=True)


def test_the_line_goes_into_the_crontab_once_and_other_lines_stay(machine: Machine) -> None:
    machine.with_cron().table.write_text("MAILTO=ada\n0 3 * * * backup\n")
    for _ in range(2):
        assert machine.timer.install(cron=True) == [f"added to your crontab: {machine.timer.line}"]
    assert machine.table.read_text() == f"MAILTO=ada\n0 3 * * * backup\n{machine.timer.line}\n"
    assert machine.timer.installed
    assert machine.timer.uninstall() == ["removed its line from your crontab"]
    assert machine.table.read_text() == "MAILTO=ada\n0 3 * * * backup\n"


def test_a_percent_sign_in_a_path_does_not_cut_the_line_of_cron(machine: Machine) -> None:
    assert r"/opt/slurm 100\%/bin" in machine.timer.line
    assert f"cd '{machine.timer.folder}' && " in machine.timer.line


# ── what submit says ──────────────────────────────────────────────────────────


@pytest.fixture
def sandbox(tmp_path: Path, machine: Machine) -> Sandbox:
    return Sandbox(tmp_path / "place", env={**machine.env, "ONWARD_STATE_DIR": str(tmp_path / "state")})


def test_how_to_have_runs_watched_is_said_once(sandbox: Sandbox) -> None:
    assert hint_once(sandbox.context) == HINT
    assert list(hint_once(sandbox.context)) == []


def test_nothing_is_said_where_a_timer_watches_already(sandbox: Sandbox, machine: Machine) -> None:
    machine.with_systemd().timer.install(cron=False)
    assert list(hint_once(sandbox.context)) == []
