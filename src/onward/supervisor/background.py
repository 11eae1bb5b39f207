"""What runs beside the training and must never hurt it: work repeated in a thread, samples of host and GPUs."""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from onward.rundir.layout import LegLocal
from onward.supervisor.telemetry.gpu import GpuSampler
from onward.supervisor.telemetry.host import HostSampler

log = logging.getLogger(__name__)

SAMPLE_SECONDS = 10.0
_SAMPLE_VARIABLE = "NVIDIA_SMI_DELAY_SECONDS"  # the name that scripts with a log of their GPUs give it
_SAMPLE_RANGE = (1.0, 120.0)  # seconds: idle GPUs, and the memory of the training, are to be seen within minutes
MIRROR_SECONDS = 2.0
NODE_MIRROR_SECONDS = 5.0  # by the agents of other nodes: there may be many, and people look at the first node's log
_FIGURES = ("percent", "mem_used_mib", "mem_total_mib", "power_w", "temperature_c")


@contextmanager
def never_hurts_training(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # a disk that is full or closed to us: no mistake of ours to be traced
        log.warning("%s failed, but the training continues: %s", what, error)
    except Exception:
        log.exception("%s failed; the training continues", what)


class Repeating:
    """Calls `work` every so often in a thread of its own, until stopped. A call that hangs holds up nobody else.

    What fails again and again in the same way is said once.
    """

    def __init__(self, what: str, work: Callable[[], object], *, every: float) -> None:
        self._what = what
        self._work = work
        self._every = every
        self._stopping = threading.Event()
        self._failure = ""
        self._thread = threading.Thread(target=self._loop, name=what, daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # no address space left for a thread
            log.error("%s cannot run during the training: %s", what, error)

    def stop(self, *, within: float = 1.0) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=within)

    @property
    def stopped(self) -> bool:
        return not self._thread.is_alive()

    def _loop(self) -> None:
        while True:
            with never_hurts_training(self._what):
                self._work_once()
            if self._stopping.wait(self._every):
                return

    def _work_once(self) -> None:
        try:
            self._work()
        except Exception as error:
            if repr(error) == self._failure:
                return
            self._failure = repr(error)
            raise
        if self._failure:
            log.info("%s works again", self._what)
            self._failure = ""


def sample_seconds(variables: Mapping[str, str]) -> float:
    """How often to sample, as the run's variables say."""
    text = variables.get(_SAMPLE_VARIABLE, "")
    try:
        seconds = float(text or SAMPLE_SECONDS)
    except ValueError:
        seconds = math.nan
    least, most = _SAMPLE_RANGE
    if least <= seconds <= most:
        return seconds
    log.warning("%s is %r, expected seconds from %.0f to %.0f; taking %.0f", _SAMPLE_VARIABLE, text, least, most, SAMPLE_SECONDS)
    return SAMPLE_SECONDS


class SystemSampler:
    """Host and GPU figures into the spool, as records like any metric; the GPUs also as a table people know.

    `node` is the node's name in a leg of several, `number` its place among them: each writes files of its own.
    """

    def __init__(self, local: LegLocal, leg: int, host: HostSampler, gpu: GpuSampler, *, node: str = "", number: int = 0) -> None:
        writer = f"-n{number}" if number else ""
        self._spool = local.spool / f"leg-{leg:04d}.system{writer}.jsonl"
        self._table = local.logs / f"leg-{leg:04d}.gpu{writer}.csv"
        self._node = node
        self._host = host
        self._gpu = gpu
        self._sequence = 0
        self.state_bytes = 0  # that the training holds: in the memory of its GPUs, or without any in the host's

    @property
    def peak_rss(self) -> int:
        """MiB"""
        return self._host.peak_rss

    def sample(self) -> None:
        now = time.time()
        values = self._host.sample(now)
        gpus = self._gpu.sample()
        used = sum(figures.get("mem_used_mib", 0.0) for figures in gpus.values()) if gpus else values.get("system/rss_mib", 0.0)
        self.state_bytes = int(used) << 20
        for uuid, figures in gpus.items():
            values.update({f"gpu/{uuid}/{name}": value for name, value in figures.items()})
        if self._node:
            values = {f"system/node/{self._node}/{key.removeprefix('system/')}": value for key, value in values.items()}
        _append(self._spool, json.dumps({"n": self._sequence, "t": now, "kind": "system", "m": values}, separators=(",", ":")))
        self._sequence += 1
        if gpus and not self._table.exists():
            _append(self._table, ",".join(("time", "uuid", "name", *_FIGURES)))
        for uuid, figures in gpus.items():
            _append(self._table, ",".join([f"{now:.0f}", uuid, self._gpu.names[uuid], *(str(figures.get(name, "")) for name in _FIGURES)]))


def _append(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")
