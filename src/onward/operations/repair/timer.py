"""A timer that runs `onward tend` every ten minutes: one of systemd's for this user, or a line in the crontab."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onward.errors import NotOffered, SchedulerError, StorageError
from onward.operations.systemd_units import command_line, environment_lines, kept_variables, plain_value, user_units
from onward.schedulers.command import Answer, run_command
from onward.sdk.atomic_files import write_whole

_UNIT = "onward-tend"
_MINUTES = 10
_TIMEOUT = 30.0
_MARK = "# onward tend"  # by which our own line in a crontab is known
_BUS = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")


@dataclass(frozen=True, kw_only=True)
class TendTimer:
    """`folder`: where `onward tend` starts, since a root may be relative to it."""

    env: Mapping[str, str]
    folder: Path

    def install(self, *, cron: bool) -> list[str]:
        """What was written, in words. Done twice, it is done once."""
        if cron:
            return self._install_line()
        if not self._has_systemd():
            raise self._no_systemd()
        return self._install_units()

    def uninstall(self) -> list[str]:
        """What was removed; nothing where nothing was installed."""
        return [*self._remove_units(), *self._remove_line()]

    @property
    def installed(self) -> bool:
        return self._timer.exists() or _MARK in (self._crontab() or "")

    # ── systemd ───────────────────────────────────────────────────────────────

    @property
    def _units(self) -> Path:
        return user_units(self.env)

    @property
    def _timer(self) -> Path:
        return self._units / f"{_UNIT}.timer"

    @property
    def _service(self) -> Path:
        return self._units / f"{_UNIT}.service"

    def _has_systemd(self) -> bool:
        answer = self._run("systemctl", "--user", "show-environment")
        return answer is not None and answer.code == 0

    def _install_units(self) -> list[str]:
        try:
            self._units.mkdir(parents=True, exist_ok=True)
            write_whole(self._service, self.service_text())
            write_whole(self._timer, TIMER_TEXT)
        except OSError as error:
            hint = "onward tend --install --cron uses cron"
            raise StorageError(f"{self._units} cannot be written: {error.strerror}", hint=hint) from error
        for words in (["daemon-reload"], ["enable", "--now", self._timer.name]):
            answer = self._run("systemctl", "--user", *words)
            if answer is None or answer.code:
                said = answer.err if answer else "no answer"
                raise NotOffered(
                    f"{self._timer} is written, but systemctl --user {' '.join(words)} failed: {said}",
                    hint="`onward tend --uninstall` removes it; --install --cron uses cron instead",
                )
        lines = [f"wrote {self._service}", f"wrote {self._timer}: onward tend every {_MINUTES} minutes, in {self.folder}"]
        return [*lines, f"enabled {self._timer.name}", *self._lingering()]

    def _lingering(self) -> Iterator[str]:
        answer = self._run("loginctl", "show-user", str(os.getuid()), "--property=Linger")
        if answer is None or answer.code or "Linger=yes" not in answer.out:
            yield "it runs only while you are logged in: `loginctl enable-linger` makes it run always"

    def service_text(self) -> str:
        return (
            "[Unit]\nDescription=Onward: queue jobs for runs that have none\n\n"
            f"[Service]\nType=oneshot\nWorkingDirectory={plain_value(self.folder)}\n{environment_lines(self.env)}"
            f"ExecStart={command_line(*_COMMAND)}\nNice=10\n"
        )

    def _remove_units(self) -> Iterator[str]:
        if not (self._timer.exists() or self._service.exists()):
            return
        self._run("systemctl", "--user", "disable", "--now", self._timer.name)
        for path in (self._timer, self._service):
            if path.exists():
                path.unlink()
                yield f"removed {path}"
        self._run("systemctl", "--user", "daemon-reload")

    # ── cron ──────────────────────────────────────────────────────────────────

    @property
    def line(self) -> str:
        """A percent sign means a new line to cron."""
        kept = [f"{name}={shlex.quote(value)}" for name, value in kept_variables(self.env).items()]
        words = f"cd {shlex.quote(str(self.folder))} && {' '.join([*kept, shlex.join(_COMMAND)])}".replace("%", r"\%")
        return f"*/{_MINUTES} * * * * {words} {_MARK}"

    def _install_line(self) -> list[str]:
        before = self._crontab()
        if before is None:
            raise NotOffered("there is no crontab here, so nothing was installed", hint=_OTHERWISE)
        others = [line for line in before.splitlines() if not line.endswith(_MARK)]
        self._write_crontab([*others, self.line])
        return [f"added to your crontab: {self.line}"]

    def _remove_line(self) -> Iterator[str]:
        before = self._crontab() or ""
        others = [line for line in before.splitlines() if not line.endswith(_MARK)]
        if len(others) < len(before.splitlines()):
            self._write_crontab(others)
            yield "removed its line from your crontab"

    def _crontab(self) -> str | None:
        """Its text; None where there is no such program, or this user may not use it."""
        answer = self._run("crontab", "-l")
        if answer is None:
            return None
        if answer.code:
            return "" if "no crontab for" in answer.err else None
        return answer.out

    def _write_crontab(self, lines: Sequence[str]) -> None:
        with tempfile.NamedTemporaryFile("w", prefix="onward-", suffix=".cron") as file:
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            answer = self._run("crontab", file.name)
        if answer is None or answer.code:
            raise NotOffered(f"crontab did not accept the new lines: {answer.err if answer else 'no answer'}", hint=_OTHERWISE)

    def _no_systemd(self) -> NotOffered:
        here = "systemd has no user timers here (`systemctl --user` does not answer), so nothing was installed"
        if self._crontab() is None:
            return NotOffered(f"{here}; and there is no crontab", hint=_OTHERWISE)
        return NotOffered(here, hint=f"`onward tend --install --cron` adds this line to your crontab:\n  {self.line}")

    def _run(self, *argv: str) -> Answer | None:
        """None: the program is not there, or does not answer."""
        try:
            return run_command(argv, timeout=_TIMEOUT, extra={name: self.env[name] for name in _BUS if name in self.env})
        except SchedulerError:
            return None


_OTHERWISE = "keep `onward up` running, or run `onward tend` every ten minutes by other means"
_COMMAND = [sys.executable, "-m", "onward", "tend"]
TIMER_TEXT = (
    "[Unit]\nDescription=Onward: watch runs\n\n"
    f"[Timer]\nOnCalendar=*:0/{_MINUTES}\nRandomizedDelaySec=60\nPersistent=true\n\n"
    "[Install]\nWantedBy=timers.target\n"
)
