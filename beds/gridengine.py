"""The Grid Engine bed: a qmaster and three execution hosts with networks of their own, and faults.

`GridEngineBed().up()`, then `.crash("e1")` (a job submitted with -r y goes on elsewhere about half a
minute later), `.heal("e1")`, and at the end `.down()`.
"""

import hashlib
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from beds import gridengine_config as config
from beds import hosts, packages, place, users
from beds.bed import Say, describe, line, news, say_at_once
from beds.command import run
from beds.errors import BedError
from beds.gridengine_daemons import NETWORK, GridEngineDaemons, host_named
from beds.gridengine_layout import ADMIN, ANSWERS, BINARIES, HOST_NAMES, MASTER, PACKAGES, USERS, Layout
from beds.place import beds_folder, claim, locked, own_folder, require_root, write_whole
from beds.process import Process

_OLD = (
    3600.0  # seconds: a qmaster that has run for hours may no longer start the jobs of a dead host elsewhere (seen after dozens of faults)
)


class GridEngineBed:
    """A real Grid Engine from Debian's packages. Every method that changes something needs root."""

    name = "gridengine"
    packages: tuple[str, ...] = PACKAGES
    answers: tuple[str, ...] = ANSWERS

    def __init__(self, folder: Path | None = None, *, say: Say = say_at_once) -> None:
        self.layout = Layout((folder or beds_folder() / self.name).absolute())
        self.daemons = GridEngineDaemons(self.layout)
        self.cell = self.daemons.cell
        self._say = say

    # --- coming and going ---

    def up(self) -> None:
        """Install, start and repair until every queue takes jobs. On a healthy bed: only look."""
        if os.geteuid() != 0:
            self._look_only()
            return
        with locked(self.layout.top):
            self._report("packages", news("installed", packages.ensure(PACKAGES, answers=ANSWERS)) or "all there")
            self._report("users", news("created", users.ensure(USERS)) or "all there")
            self.daemons.master.check_port()
            claim(self.layout.top)
            self._choose_hosts()
            self._make_cell()
            self._start("qmaster", self._start_master)
            self._configure()
            for host in self.layout.hosts:
                self.daemons.forget_jobs(host)
                self._start(f"execd {host.name}", partial(self.daemons.start_execd, host))
            self.cell.repair()
            self._report("queues", " ".join(sorted(self.cell.states())))
        for sentence in self._how_to_use():
            self._say(sentence)

    def down(self, *, wipe: bool = False) -> None:
        """Delete all jobs, end the daemons this bed started, remove what it left on the machine."""
        require_root("taking down the gridengine bed")
        with locked(self.layout.top):
            if self.daemons.master.running and self.cell.answers():
                self._report("jobs", f"deleted {self.cell.delete_all()}")
            ours = [daemon.name for daemon in self.daemons.all() if daemon.process() is not None]
            for daemon in self.daemons.all():
                daemon.ask_to_end()
            for daemon in self.daemons.all():
                daemon.stop(hard=wipe)
            for host in self.layout.hosts:
                self.daemons.kill_all(host)
            if self.layout.separate:
                NETWORK.remove()
            hosts.remove(self.layout.top)
            self._report("daemons", news("ended", ours) or "none ran")
            if wipe:
                place.wipe(self.layout.top)
        kept = "state wiped" if wipe else f"state kept in {self.layout.top}"
        self._report("gridengine", f"down; {kept}; the users {', '.join(USERS)} stay")

    def is_up(self) -> bool:
        """Whether every daemon runs and every queue takes jobs."""
        return all(daemon.running for daemon in self.daemons.all()) and not self.cell.unusable()

    def takes_jobs(self) -> bool:
        """Whether jobs that name no host can start, although a test may have crashed some hosts."""
        return self.daemons.master.running and any(not self.cell.unusable([host.name]) for host in self.layout.hosts)

    def status(self) -> list[str]:
        lines = [line(daemon.name, describe(daemon.process())) for daemon in self.daemons.all()]
        if self.daemons.master.running:
            lines += [line(name, f"state {state}" if state else "takes jobs") for name, state in self.cell.states().items()]
        return lines

    def environment(self) -> dict[str, str]:
        """For Grid Engine's commands; PATH has the real ones before Debian's slow wrappers."""
        return {**self.layout.environment, "PATH": f"{self.path()}:{os.environ.get('PATH', os.defpath)}"}

    def path(self) -> str:
        """The folder of Grid Engine's own programs, to stand first in PATH."""
        return str(BINARIES)

    # --- faults ---

    def cut(self, host: str) -> None:
        """Split the host off: only its execd dies, its jobs run on unseen."""
        found = host_named(self.layout, host)
        with self._changing(f"cutting off {host}"):
            self.daemons.execd(found).stop(hard=True)

    def crash(self, host: str) -> int:
        """Kill the whole host: execd, shepherds, job processes. How many processes of jobs it were."""
        found = host_named(self.layout, host)
        with self._changing(f"crashing {host}"):
            self.daemons.execd(found).stop(hard=True)
            return self.daemons.kill_all(found)

    def unplug(self, host: str) -> None:
        """Take out the host's network cable: everything there runs on, and nobody hears of it."""
        found = host_named(self.layout, host)
        with self._changing(f"unplugging {host}"):
            if not self.layout.separate:
                raise BedError("the one host of this bed has no cable: it is this machine")
            NETWORK.plug(found.name, into=False)

    def heal(self, host: str) -> None:
        """Plug the host in and start its execd again, and wait until its queues take jobs."""
        found = host_named(self.layout, host)
        with self._changing(f"healing {host}"):
            if self.layout.separate:
                NETWORK.ensure()
            self.daemons.start_execd(found)
            self.cell.repair((host,), timeout=120)

    def stop_qmaster(self, *, hard: bool = False) -> None:
        """End the qmaster; `hard` kills it, and job ids of the last 15 s are given out again."""
        with self._changing("stopping the qmaster"):
            self.daemons.master.stop(hard=hard)

    def start_qmaster(self) -> None:
        with self._changing("starting the qmaster"):
            self.daemons.start_master()

    @contextmanager
    def parameters(self, more: str) -> Iterator[None]:
        """Every execd gets these execd_params too, for as long as the block runs. They hold for jobs that start from then on."""
        usual = config.configuration(self.layout)["execd_params"]
        with self._changing(f"setting {more}"):
            self.cell.set_global("execd_params", f"{usual},{more}")
        try:
            yield
        finally:
            with self._changing(f"unsetting {more}"):
                self.cell.set_global("execd_params", usual)

    def processes(self, host: str) -> list[Process]:
        """Every process of the host's jobs, its shepherds first."""
        return self.daemons.processes(host_named(self.layout, host))

    # --- parts of up ---

    def _look_only(self) -> None:
        """What an ordinary user gets of `up`: that all is well, or what root has to do."""
        packages.ensure(PACKAGES)
        if not self.is_up():
            require_root("bringing up the gridengine bed")
        self._report("gridengine", "up; only looked, since repairing it needs root")

    def _choose_hosts(self) -> None:
        """Three hosts where this machine gives namespaces, else one; a cell keeps what it was made with."""
        if not self.layout.chosen_hosts.exists() or not self.layout.separate:
            reason = NETWORK.possible()
            names = HOST_NAMES[:1] if reason else HOST_NAMES
            write_whole(self.layout.chosen_hosts, " ".join(names).encode())
            if reason:
                self._report("hosts", f"only e1, which is this machine: no network namespaces here ({reason})")
        if self.layout.separate:
            made = NETWORK.ensure()
            self._report("hosts", news("made", made) or "all there")
            hosts.ensure_each(self.layout.top, {NETWORK.gateway: [MASTER], **{a: [n] for n, a in NETWORK.hosts.items()}})
        else:
            hosts.ensure(self.layout.top, [MASTER, "e1"])

    def _make_cell(self) -> None:
        """The folders and files that Grid Engine reads before it can be asked anything, and its empty database."""
        for folder in (self.layout.root, self.layout.root / "default", self.layout.records, self.layout.log):
            own_folder(folder)
        for folder in (self.layout.common, self.layout.master_spool, self.layout.execd_spool):
            own_folder(folder, owner=ADMIN)
        for name in ("bin", "lib", "utilbin"):
            own_folder(self.layout.root / name)
            _link(self.layout.root / name / "lx-amd64", BINARIES)
        _link(self.layout.root / "util", Path("/usr/share/gridengine/util"))
        own = [socket.gethostname(), *_names_of(socket.gethostname())]
        texts = {
            "bootstrap": config.bootstrap(self.layout),
            "act_qmaster": f"{self.layout.master}\n",
            "host_aliases": config.aliases(self.layout.master, own),
            "settings.sh": config.settings(self.layout),
        }
        for name, text in texts.items():
            write_whole(self.layout.common / name, text.encode(), owner=ADMIN)
        if not self.layout.database.exists():
            self._make_database()

    def _start_master(self) -> bool:
        """A database that a hard end left unreadable is made anew: its jobs were lost with that end."""
        running = self.daemons.master.process()
        if running and running.age > _OLD and self.cell.answers() and not self.cell.jobs():
            self.daemons.master.stop()
        try:
            return self.daemons.start_master()
        except BedError as error:
            self._report("qmaster", f"does not start, so its database is made anew: {error.what.splitlines()[0]}")
            self.daemons.master.stop(hard=True)
            place.remove_tree(self.layout.database)
            self._make_database()
            return self.daemons.start_master()

    def _make_database(self) -> None:
        """Built in whole or not at all: the name in the bootstrap file is the final one."""
        place.own_folder(self.layout.database, owner=ADMIN)
        try:
            self._as_admin("spoolinit", "berkeleydb", "libspoolb", str(self.layout.database), "init")
            given = self.layout.top / "global"
            text = Path("/usr/share/gridengine/default-configuration").read_text()
            write_whole(given, config.changed(text, config.configuration(self.layout)).encode(), owner=ADMIN)
            self._as_admin("spooldefaults", "configuration", str(given))
            self._as_admin("spooldefaults", "complexes", "/usr/share/gridengine/util/resources/centry")
            self._as_admin("spooldefaults", "usersets", "/usr/share/gridengine/util/resources/usersets")
            self._as_admin("spooldefaults", "managers", "root", ADMIN)
        except BaseException:
            place.remove_tree(self.layout.database)
            raise
        self.layout.applied.unlink(missing_ok=True)
        self._report("cell", f"made in {self.layout.root}")

    def _as_admin(self, program: str, *words: str) -> None:
        become = ("setpriv", f"--reuid={ADMIN}", f"--regid={ADMIN}", "--clear-groups")
        run([*become, str(BINARIES / program), *words], env=self.layout.environment)

    def _configure(self) -> None:
        print_of_it = hashlib.sha256(config.everything(self.layout).encode()).hexdigest()
        text = self.layout.applied.exists() and self.layout.applied.read_text() == print_of_it
        if text and "unknown" not in self.cell.unusable().values():
            self._report("config", "unchanged")
            return
        self.cell.configure()
        write_whole(self.layout.applied, print_of_it.encode())
        self._report("config", "given to the qmaster")

    def _how_to_use(self) -> list[str]:
        return [
            "",
            f"Grid Engine is up. Submit as {' or '.join(USERS)}:",
            '  eval "$(python3 -m beds env)"; cd /tmp; runuser -u alice -- qsub -terse -b y sleep 10',
        ]

    # --- small matters ---

    def _changing(self, doing: str) -> AbstractContextManager[None]:
        require_root(doing)
        if not self.layout.applied.exists():
            raise BedError(f"{doing}: there is no bed in {self.layout.top}", hint="bring it up")
        return locked(self.layout.top)

    def _start(self, part: str, start: Callable[[], bool]) -> None:
        self._report(part, "started" if start() else "runs")

    def _report(self, part: str, text: str) -> None:
        self._say(line(part, text))


def _link(path: Path, target: Path) -> None:
    if not path.is_symlink():
        path.symlink_to(target)


def _names_of(name: str) -> list[str]:
    """Every name this machine answers to, as far as its own tables know."""
    try:
        first, others, addresses = socket.gethostbyname_ex(name)
    except OSError:
        return []
    found = [first, *others]
    for address in addresses:
        try:
            first, others, _ = socket.gethostbyaddr(address)
        except OSError:
            continue
        found += [first, *others]
    return [one for one in found if one not in HOST_NAMES]
