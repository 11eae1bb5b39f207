"""The Slurm bed: a cluster of five claimed nodes with accounting, GPUs, preemption and faults.

`SlurmBed().up()`, then `.crash("g1")` (its jobs end as NODE_FAIL about half a minute later),
`.heal("g1")`, and at the end `.down()`.
"""

import os
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from beds import cgroups, devices, hosts, packages, place, slurm_nodes, slurm_site, users
from beds.bed import Say, describe, line, news, say_at_once
from beds.errors import BedError
from beds.place import beds_folder, claim, locked, own_folder, require_root, write_whole
from beds.process import Process, boot_id
from beds.slurm_accounts import Accounts
from beds.slurm_config import Tracking, files
from beds.slurm_daemons import SlurmDaemons
from beds.slurm_layout import (
    ACCOUNTS,
    DEFAULT_NODES,
    NODE_NAMES,
    NODES,
    PACKAGES,
    REST_PORT,
    SLURM_USER,
    Layout,
)
from beds.slurm_nodes import Nodes, node_named


class SlurmBed:
    """A real Slurm from Debian's packages. Every method that changes something needs root."""

    name = "slurm"
    packages: tuple[str, ...] = PACKAGES
    answers: tuple[str, ...] = ()

    def __init__(self, folder: Path | None = None, *, say: Say = say_at_once) -> None:
        self.layout = Layout((folder or beds_folder() / self.name).absolute())
        self.daemons = SlurmDaemons(self.layout)
        self.nodes = Nodes(self.daemons.environment)
        self._say = say

    # --- coming and going ---

    def up(self) -> None:
        """Install, start and repair until every node takes jobs. On a healthy bed: only look."""
        if os.geteuid() != 0:
            self._look_only()
            return
        with locked(self.layout.top):
            self._report("packages", news("installed", packages.ensure(PACKAGES)) or "all there")
            self._report("users", news("created", users.ensure(ACCOUNTS)) or "all there")
            tracking = Tracking.of_this_machine()
            self._report("jobs", str(tracking))
            for daemon in self.daemons.all():
                daemon.check_port()  # before anything is made: another bed may be up
            self._make_folders()
            self._start("munged", self.daemons.start_munged)
            self.daemons.mariadb.prepare()
            self._start("mariadbd", self.daemons.start_database)
            self._configure(tracking)
            self._start("slurmdbd", self.daemons.start_accounting)
            added = Accounts(self.daemons.environment).ensure()
            self._report("accounts", "added" if added else "all there")
            self._start("slurmctld", self.daemons.start_controller)
            for node in NODES:
                self._start(f"slurmd {node.name}", partial(self.daemons.start_node, node))
            self._start("slurmrestd", self.daemons.start_rest)
            reopened = self.nodes.reopen_partitions()
            resumed = self.nodes.repair()
            states = " ".join(f"{name}={state}" for name, state in self.nodes.states().items())
            self._report("nodes", states + news("; resumed", resumed))
            if reopened:
                self._report("partitions", news("set up again:", reopened))
            self._link_site_conf()
        for sentence in self._how_to_use():
            self._say(sentence)

    def down(self, *, wipe: bool = False) -> None:
        """Cancel all jobs, end the daemons this bed started, remove what it left on the machine."""
        require_root("taking down the slurm bed")
        with locked(self.layout.top):
            self._end_jobs()
            self._end_daemons()
            self._clear_machine()
            if wipe:
                place.wipe(self.layout.top)
        kept = "state wiped" if wipe else f"state kept in {self.layout.top}"
        self._report("slurm", f"down; {kept}; the users {', '.join(ACCOUNTS)} stay")

    def is_up(self) -> bool:
        """Whether every daemon runs and every node takes jobs."""
        return all(daemon.running for daemon in self.daemons.all()) and not self.nodes.unusable()

    def takes_jobs(self) -> bool:
        """Whether jobs that name no node can start, although a test may have crashed some nodes."""
        return self.daemons.controller.running and not self.nodes.unusable().keys() >= set(DEFAULT_NODES)

    def status(self) -> list[str]:
        lines = [line(daemon.name, describe(daemon.process())) for daemon in self.daemons.all()]
        if self.daemons.controller.running:
            lines += [line(f"node {name}", state) for name, state in self.nodes.states().items()]
        return lines

    def environment(self) -> dict[str, str]:
        """SLURM_CONF for Slurm's commands, and where the REST daemon listens."""
        return {**self.daemons.environment, "BEDS_SLURM_REST": f"http://127.0.0.1:{REST_PORT}"}

    # --- faults ---

    def cut(self, node: str) -> None:
        """Split the node off: only its slurmd dies, its jobs run on unseen."""
        with self._changing(f"cutting off {node}"):
            self.daemons.nodes[node_named(node).name].stop(hard=True)

    def crash(self, node: str) -> int:
        """Kill the whole node: slurmd, slurmstepds, job processes. How many processes it were."""
        found = node_named(node)
        with self._changing(f"crashing {node}"):
            self.daemons.nodes[node].stop(hard=True)
            killed = slurm_nodes.kill_all(found, self.layout)
            cgroups.remove(found.cgroup)
            return killed

    def heal(self, node: str) -> None:
        """Start the node's slurmd again, and wait until the node takes jobs."""
        found = node_named(node)
        with self._changing(f"healing {node}"):
            self.daemons.start_node(found)
            self.nodes.repair((node,))

    def pause_controller(self) -> None:
        """slurmctld takes connections but answers nothing, until `continue_controller`."""
        with self._changing("pausing slurmctld"):
            self.daemons.controller.pause()

    def continue_controller(self) -> None:
        with self._changing("continuing slurmctld"):
            self.daemons.controller.resume()

    def stop_controller(self, *, hard: bool = False) -> None:
        """End slurmctld; `hard` kills it, and what it had not saved yet is lost."""
        with self._changing("stopping slurmctld"):
            self.daemons.controller.stop(hard=hard)

    def start_controller(self) -> None:
        with self._changing("starting slurmctld"):
            self.daemons.start_controller()

    def stop_accounting(self, *, hard: bool = False) -> None:
        """End slurmdbd: sacct fails, jobs run on, their records wait in slurmctld."""
        with self._changing("stopping slurmdbd"):
            self.daemons.accounting.stop(hard=hard)

    def start_accounting(self) -> None:
        with self._changing("starting slurmdbd"):
            self.daemons.start_accounting()

    def processes(self, node: str) -> list[Process]:
        """Every process of the node's jobs, its slurmstepds first."""
        return slurm_nodes.processes(node_named(node), self.layout)

    # --- parts of up and down ---

    def _look_only(self) -> None:
        """What an ordinary user gets of `up`: that all is well, or what root has to do."""
        packages.ensure(PACKAGES)
        if not self.is_up():
            require_root("bringing up the slurm bed")
        self._report("slurm", "up; only looked, since repairing it needs root")

    def _make_folders(self) -> None:
        claim(self.layout.top)
        for folder in (self.layout.etc, self.layout.spool, self.layout.devices):
            own_folder(folder)
        own_folder(self.layout.records)
        for folder in (self.layout.log, self.layout.pids):
            own_folder(folder, owner=SLURM_USER)
        own_folder(self.layout.saved, owner=SLURM_USER, mode=0o700)
        for node in NODES:
            own_folder(self.layout.spool / node.name)
        self.daemons.munge.prepare()
        if not self.layout.jwt_key.exists():
            write_whole(self.layout.jwt_key, secrets.token_bytes(32), owner=SLURM_USER, mode=0o600)
        for number in range(max(node.gpus for node in NODES)):
            devices.make_gpu(self.layout.devices / f"gpu{number}")
        hosts.ensure(self.layout.top, NODE_NAMES)
        write_whole(self.layout.raised, boot_id().encode())

    def _configure(self, tracking: Tracking) -> None:
        """Write the configuration; daemons that run with another one end here, jobs run on."""
        changed = False
        for name, text in files(self.layout, tracking, self.daemons.mariadb.password).items():
            path = self.layout.etc / name
            if path.exists() and path.read_text() == text:
                continue
            changed = True
            secret = name == "slurmdbd.conf"
            owner, mode = (SLURM_USER, 0o600) if secret else ("root", 0o644)
            write_whole(path, text.encode(), owner=owner, mode=mode)
        if changed:
            self._report("config", f"written to {self.layout.etc}")
            self._end_slurm_daemons()
        else:
            self._report("config", "unchanged")

    def _end_jobs(self) -> None:
        """Cancel every job; a dead slurmctld is started for that, else it would remember them."""
        needed = (self.daemons.munged, self.daemons.accounting, self.daemons.database)
        if not all(daemon.running for daemon in needed):
            return
        try:
            self.daemons.start_controller()
            count = self.nodes.cancel_all()
        except BedError as error:
            self._report("jobs", f"not cancelled, will be killed: {error.what}")
        else:
            self._report("jobs", f"cancelled {count}" if count else "there were none")

    def _end_slurm_daemons(self) -> None:
        together = [*self.daemons.nodes.values(), self.daemons.rest, self.daemons.controller]
        for daemon in together:
            daemon.ask_to_end()
        for daemon in [*together, self.daemons.accounting]:
            daemon.stop()

    def _end_daemons(self) -> None:
        ours = [daemon.name for daemon in self.daemons.all() if daemon.process() is not None]
        self._end_slurm_daemons()
        self.daemons.database.stop()
        self.daemons.munged.stop()
        self._report("daemons", news("ended", ours) or "none ran")

    def _clear_machine(self) -> None:
        """Kill what the jobs left behind, and take back every change outside the state folder.

        A node's processes are known by its name, so a bed that is not up must leave them alone:
        they may be another bed's.
        """
        for node in NODES if self._was_raised() else ():
            left = slurm_nodes.kill_all(node, self.layout)
            if left:
                self._report(f"node {node.name}", f"killed {left} left-over processes")
            if not cgroups.remove(node.cgroup):
                self._report(f"node {node.name}", f"could not remove all of {node.cgroup}")
        slurm_site.unlink(self.layout.slurm_conf)
        hosts.remove(self.layout.top)
        self.layout.raised.unlink(missing_ok=True)

    def _was_raised(self) -> bool:
        try:
            return self.layout.raised.read_text() == boot_id()
        except FileNotFoundError:
            return False

    def _link_site_conf(self) -> None:
        if slurm_site.link(self.layout.slurm_conf):
            text = "is this bed's: plain sbatch works for everybody"
        else:
            text = "is not this bed's and stays: set SLURM_CONF"
        self._report("site", f"{slurm_site.SITE_CONF} {text}")

    def _how_to_use(self) -> list[str]:
        return [
            "",
            f"Slurm is up. Submit as {' or '.join(ACCOUNTS)}, or as root:",
            "  runuser -u alice -- srun -p gpu --gres=gpu:a100:1 env",
            "  runuser -u alice -- sbatch --wrap 'sleep 10'   (from a folder alice may write)",
            'Where SLURM_CONF is needed:  eval "$(python3 -m beds env)"',
        ]

    # --- small matters ---

    def _changing(self, doing: str) -> AbstractContextManager[None]:
        require_root(doing)
        if not self.layout.slurm_conf.exists():
            raise BedError(f"{doing}: there is no bed in {self.layout.top}", hint="bring it up")
        return locked(self.layout.top)

    def _start(self, part: str, start: Callable[[], bool]) -> None:
        fresh = start()
        self._report(part, "started" if fresh else "runs")

    def _report(self, part: str, text: str) -> None:
        self._say(line(part, text))
