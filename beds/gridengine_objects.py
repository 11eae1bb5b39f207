"""A running Grid Engine: giving it its objects by qconf, and asking it how its queues are."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from beds import gridengine_config as config
from beds.command import Outcome, attempt, run
from beds.errors import BedError
from beds.gridengine_layout import BINARIES, ENVIRONMENTS, PROJECT, QUEUES, Layout
from beds.waiting import until


@dataclass(frozen=True)
class Cell:
    """`environment` points Grid Engine's commands at the bed."""

    layout: Layout
    environment: Mapping[str, str]

    def answers(self) -> bool:
        return self._try("qconf", "-sh").ok

    def configure(self) -> None:
        """Give the qmaster every object; what is there already is changed."""
        for host in (self.layout.master, *(host.name for host in self.layout.hosts)):
            self._add("-ah", host)
        for host in (self.layout.master, *(host.name for host in self.layout.hosts if host.submits)):
            self._add("-as", host)
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            self._give(folder / "global", "-Mconf", config.changed(self._ask("-sconf", "global"), config.configuration(self.layout)))
            self._give(folder / "scheduler", "-Msconf", config.changed(self._ask("-ssconf"), config.SCHEDULER))
            self._give(folder / "complexes", "-Mc", config.complexes(self._ask("-sc")))
            for one in self.layout.hosts:
                self._have(folder / one.name, "e", one.name, config.host(one))
                self._have(folder / one.name, "conf", one.name, config.host_configuration(one))
            for name in ENVIRONMENTS:
                self._have(folder / name, "p", name, config.parallel_environment(name))
            self._have(folder / PROJECT, "prj", PROJECT, config.project())
            template = self._ask("-sq")
            for queue in QUEUES:
                self._have(folder / queue.name, "q", queue.name, config.queue(template, queue, self.layout.hosts))

    def set_global(self, name: str, value: str) -> None:
        """One value of the global configuration; execds have it a load report later, which is a second here."""
        with tempfile.TemporaryDirectory() as place:
            self._give(Path(place) / "global", "-Mconf", config.changed(self._ask("-sconf", "global"), {name: value}))

    def states(self) -> dict[str, str]:
        """State letters by queue instance (`all.q@e1`), empty where all is well; no instances if there is no answer."""
        shown = self._try("qstat", "-f", "-u", "nobody")
        return instances(shown.out)

    def unusable(self, hosts: Sequence[str] = ()) -> dict[str, str]:
        """Queue instances (of these hosts) that would take no job now, with their state letters."""
        states = self.states()
        wanted = [f"{q.name}@{host.name}" for q in QUEUES for host in self.layout.hosts if host.name in q.hosts]
        mine = [name for name in wanted if not hosts or name.partition("@")[2] in hosts]
        return {name: states.get(name, "unknown") for name in mine if states.get(name, "unknown")}

    def repair(self, hosts: Sequence[str] = (), *, timeout: float = 60) -> None:
        """Clear errors, enable what was disabled, and wait until every queue instance takes jobs."""

        def usable() -> bool:
            wrong = self.unusable(hosts)
            for name, state in wrong.items():
                if "E" in state:
                    self._try("qmod", "-cq", name)
                if "d" in state:
                    self._try("qmod", "-e", name)
            return not wrong

        if not until(usable, timeout=timeout, pause=0.2):
            wrong = ", ".join(f"{name} is {state}" for name, state in self.unusable(hosts).items())
            raise BedError(
                f"after {timeout:.0f} s not every queue takes jobs: {wrong}",
                hint="'qstat -f -explain aE' has the reasons, the bed's folders qmaster/ and execd/ the messages",
            )

    def delete_all(self, *, timeout: float = 30) -> int:
        """Delete every job, wait until they are gone, and say how many it were."""
        jobs = self.jobs()
        if jobs:
            self._try("qdel", *jobs)
            if not until(lambda: not self.jobs(), timeout=timeout, pause=0.3):
                self._try("qdel", "-f", *self.jobs())
        return len(jobs)

    def jobs(self) -> list[str]:
        """Every job that waits or runs."""
        rows = (row.split() for row in self._try("qstat", "-u", "*").out.splitlines())
        return sorted({row[0] for row in rows if row and row[0].isdigit()})

    def _have(self, path: Path, kind: str, name: str, text: str) -> None:
        there = self._try("qconf", f"-s{kind}", name).ok
        self._give(path, f"-{'M' if there else 'A'}{kind}", text)

    def _give(self, path: Path, option: str, text: str) -> None:
        """qconf's exit code is no answer for every kind, so its words count too."""
        path.write_text(text)
        done = self._try("qconf", option, str(path))
        said = done.out + done.err
        if not done.ok and "has been modified" not in said and "unchanged" not in said.lower() and "modified" not in said:
            raise BedError(f"'qconf {option}' for {path.name} failed: {said.strip()}", hint=f"it was given:\n{text}")

    def _add(self, option: str, host: str) -> None:
        done = self._try("qconf", option, host)
        if not done.ok and "already exists" not in done.out + done.err:
            raise BedError(f"'qconf {option} {host}' failed: {(done.out + done.err).strip()}")

    def _ask(self, *words: str) -> str:
        return run([str(BINARIES / "qconf"), *words], env=self._environment)

    def _try(self, program: str, *words: str) -> Outcome:
        return attempt([str(BINARIES / program), *words], env=self._environment, timeout=25)

    @property
    def _environment(self) -> dict[str, str]:
        return {**self.environment, "SGE_SINGLE_LINE": "1"}


def instances(shown: str) -> dict[str, str]:
    """Read `qstat -f`: queue, type, slots, load, architecture and, where something is wrong, state letters."""
    rows = (row.split() for row in shown.splitlines())
    return {row[0]: row[5] if len(row) > 5 else "" for row in rows if row and "@" in row[0] and len(row) >= 5}
