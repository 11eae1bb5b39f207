"""Hosts on one machine: a network and a name of its own for each, joined by a bridge.

A network namespace is bound to a file below /run/netns and outlives its processes, so what runs on a
host is found again by it. The host's name is set by whoever starts something there.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from beds.command import Outcome, attempt, run
from beds.process import Process, all_processes

_BOUND = Path("/run/netns")


@dataclass(frozen=True)
class Network:
    """`hosts`: address by name, in the /24 of `gateway`, which is this machine on the bridge."""

    bridge: str  # 15 characters at most, like every interface
    gateway: str
    hosts: Mapping[str, str]

    def space(self, host: str) -> str:
        return f"{self.bridge}-{host}"

    def possible(self) -> str:
        """Empty if namespaces and bridges can be had here, else the reason why not."""
        probe, pair = f"{self.bridge}-probe", (f"{self.bridge[:8]}-p0", f"{self.bridge[:8]}-p1")
        tries = (
            ("netns", "add", probe),
            ("netns", "exec", probe, "unshare", "--uts", "true"),
            ("link", "add", pair[0], "type", "veth", "peer", "name", pair[1]),
            ("link", "set", pair[1], "netns", probe),
            ("link", "add", f"{self.bridge[:8]}-pb", "type", "bridge"),
        )
        reason = ""
        for words in tries:
            outcome = _ip(*words)
            if not outcome.ok:
                reason = f"'ip {' '.join(words)}': {outcome.err.strip() or outcome.out.strip() or f'exit code {outcome.code}'}"
                break
        for words in (("link", "del", pair[0]), ("link", "del", f"{self.bridge[:8]}-pb"), ("netns", "del", probe)):
            _ip(*words)
        return reason

    def stands(self) -> bool:
        """Whether the bridge and every host's way to it are there."""
        return all(self._linked(name) for name in self.hosts) and _address(None, self.bridge) == self.gateway

    def ensure(self) -> list[str]:
        """Have them there, and say which hosts had to be made. A host that is there keeps what runs on it."""
        if not _ip("link", "show", self.bridge).ok:
            run(["ip", "link", "add", self.bridge, "type", "bridge"])
        if _address(None, self.bridge) != self.gateway:
            run(["ip", "address", "replace", f"{self.gateway}/24", "dev", self.bridge])
        run(["ip", "link", "set", self.bridge, "up"])
        made = [name for name in self.hosts if not self._linked(name)]
        for name in made:
            self._make(name)
        return made

    def remove(self) -> None:
        """Take all of it away; processes there keep their lost namespace until they end."""
        for name in self.hosts:
            _ip("link", "del", self._wire(name))
            _ip("netns", "del", self.space(name))
            (_BOUND / self.space(name)).unlink(missing_ok=True)
        _ip("link", "del", self.bridge)

    def command(self, host: str, *argv: str) -> tuple[str, ...]:
        """The command that becomes `argv` on that host, with the same process number."""
        become = 'hostname "$1"; shift; exec "$@"'
        return ("ip", "netns", "exec", self.space(host), "unshare", "--uts", "sh", "-c", become, "sh", host, *argv)

    def plug(self, host: str, *, into: bool) -> None:
        """Put its network cable in, or take it out."""
        run(["ip", "link", "set", self._wire(host), "up" if into else "down"])

    def processes(self, host: str) -> list[Process]:
        """Every process that lives on that host."""
        here = _identity(_BOUND / self.space(host))
        if here is None:
            return []
        return [found for found in all_processes() if _identity(Path(f"/proc/{found.pid}/ns/net")) == here]

    def _wire(self, host: str) -> str:
        return f"{self.bridge}-{host}"[:15]

    def _linked(self, host: str) -> bool:
        there = _ip("link", "show", self._wire(host))
        return there.ok and "UP" in there.out and _address(self.space(host), "eth0") == self.hosts[host]

    def _make(self, host: str) -> None:
        space, wire = self.space(host), self._wire(host)
        if not _ip("netns", "exec", space, "true").ok:  # also a file that is bound to nothing, left by a reboot
            _ip("netns", "del", space)
            (_BOUND / space).unlink(missing_ok=True)
            run(["ip", "netns", "add", space])
        _ip("link", "del", wire)
        _ip("-n", space, "link", "del", "eth0")
        run(["ip", "link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", space])
        run(["ip", "link", "set", wire, "master", self.bridge, "up"])
        run(["ip", "-n", space, "address", "add", f"{self.hosts[host]}/24", "dev", "eth0"])
        for device in ("lo", "eth0"):
            run(["ip", "-n", space, "link", "set", device, "up"])
        run(["ip", "-n", space, "route", "replace", "default", "via", self.gateway])


def _ip(*words: str) -> Outcome:
    return attempt(["ip", *words], timeout=20)


def _address(space: str | None, device: str) -> str:
    where = ["-n", space] if space else []
    shown = _ip(*where, "-4", "-o", "address", "show", "dev", device).out.split()
    return shown[3].partition("/")[0] if len(shown) > 3 else ""


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
