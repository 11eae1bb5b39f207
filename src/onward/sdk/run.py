"""The Run a training script holds: log, resume, checkpoint, stop. Works the same with no supervisor, server or cluster."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from onward.sdk import contract
from onward.sdk.files import sync_folder, write_whole
from onward.sdk.ranks import Ranks, ranks_of
from onward.sdk.spool import SpoolWriter
from onward.sdk.stop import stop_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from onward.sdk.config import Config, Summary

_BY_HAND_KEEPS = 3
_FLOATS = {float}
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_run: Run | None = None


def init(
    *,
    name: str | None = None,
    project: str | None = None,
    config: object = None,
    total_steps: int | None = None,
    params: Mapping[str, object] | None = None,
    log_from: str = "first",
    agree: bool = True,
    **others: object,
) -> Run:
    """The run this process belongs to. Called again, it returns the same one.

    `config` (a mapping, or argparse's namespace) are params too, and `project` is the experiment of a run by hand: W&B's words.
    Others of its words are passed over.

    Of a training of several processes only rank 0 logs, unless `log_from` is "all". They leave at the same call of
    `should_stop()`; `agree=False` is for processes that do not train in step, and may each leave when they like.

    Inside a job of Onward everything is set by the supervisor. Started by hand, the script gets a folder of its own
    under ONWARD_ROOT (default `./runs`); set ONWARD_RUN_DIR to that folder to go on from its newest checkpoint.
    """
    global _run
    if others:
        print(f"onward: init() passes over {', '.join(sorted(others))}", file=sys.stderr)
    if _run is not None and _run.by_hand and _run.finished and (name or project or config):
        _run = None  # the next training of this process
    if _run is None:
        if log_from not in ("first", "all"):
            raise ValueError(f"init(log_from={log_from!r}): expected 'first' (rank 0 alone) or 'all'")
        _run = Run.of_environment(name=name, log_from=log_from, agree=agree)
        _run.listen_for_term()
        if config is not None:
            params = {**(params or {}), **_run.configure(config)}
        _run.announce(total_steps=total_steps, params=params, project=project)
    elif config is not None:
        _run.config.update(config)
    return _run


class Run:
    def __init__(
        self,
        *,
        folder: Path,
        leg: int,
        checkpoints: Path,
        spool: Path,
        resume: Path | None,
        by_hand: bool,
        ranks: Ranks | None = None,
        log_from: str = "first",
        agree: bool = True,
    ) -> None:
        self.folder = folder
        self.leg = leg
        self.by_hand = by_hand
        self._checkpoints = checkpoints
        self._resume = resume
        self._ranks = ranks or Ranks()
        self._logs = self._ranks.first or log_from == "all"
        self._spool = SpoolWriter(str(spool), leg=leg, rank=self._ranks.rank if self._ranks.several else None)
        self._stop = stop_of(os.environ, self._ranks, agree=agree)
        self._every = os.environ.get(contract.CHECKPOINT_EVERY, "auto")
        self._step = -1
        self._asked = False
        self._last: dict[str, float] = {}
        self._held: dict[str, object] = {}
        self._held_step: int | None = None
        self._config: Config | None = None
        self._summary: Summary | None = None
        self.finished = False
        self._unfit: set[str] = set()
        self._saved_at = time.monotonic()
        self._save_seconds = 0.0

    @classmethod
    def of_environment(cls, *, name: str | None, log_from: str = "first", agree: bool = True) -> Run:
        env = os.environ
        ranks = ranks_of(env)
        if contract.CHECKPOINT_DIR in env:
            resume = env.get(contract.RESUME_DIR)
            folder = Path(env.get(contract.RUN_DIR, "."))
            return cls(
                folder=folder,
                leg=int(env.get(contract.LEG, "1")),
                checkpoints=Path(env[contract.CHECKPOINT_DIR]),
                spool=Path(env.get(contract.SPOOL_DIR) or folder / "spool"),
                resume=Path(resume) if resume else None,
                by_hand=False,
                ranks=ranks,
                log_from=log_from,
                agree=agree,
            )
        return cls._by_hand(name or Path(sys.argv[0] or "run").stem or "run", ranks, log_from)

    @classmethod
    def _by_hand(cls, name: str, ranks: Ranks, log_from: str) -> Run:
        given = os.environ.get(contract.RUN_DIR)
        root = Path(os.environ.get(contract.ROOT, "runs"))
        name = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name).strip(".") or "run"
        owner = f"{time.strftime('%Y-%m-%d_%H%M%S')}_{name}_{os.getpid()}"
        if ranks.several:  # one folder for all that one launcher started
            owner = f"{time.strftime('%Y-%m-%d')}_{name}_{os.environ.get('MASTER_PORT') or os.getppid()}"
        if not given and not ranks.several and (root / "by-hand" / owner).exists():
            owner = f"{owner}{time.time_ns() % 1_000_000_000:09d}"  # two of one process within a second
        folder = Path(given) if given else root / "by-hand" / owner
        checkpoints = folder / "checkpoints"
        checkpoints.mkdir(parents=True, exist_ok=True)
        done = _committed(checkpoints)
        if not given and ranks.first:
            print(f"onward: started by hand; this run's folder is {folder} (ONWARD_RUN_DIR={folder} goes on from there)", file=sys.stderr)
        leg = len({path.name.split(".")[0] for path in (folder / "spool").glob("leg-*")}) + 1
        return cls(
            folder=folder,
            leg=leg,
            checkpoints=checkpoints,
            spool=folder / "spool",
            resume=done[-1] if done else None,
            by_hand=True,
            ranks=ranks,
            log_from=log_from,
        )

    # ── which process this is ─────────────────────────────────────────────────

    @property
    def rank(self) -> int:
        """Which of the training's processes this is; 0 where it is the only one."""
        return self._ranks.rank

    @property
    def world_size(self) -> int:
        """How many processes train together."""
        return self._ranks.world_size

    @property
    def local_rank(self) -> int:
        """Which of those on this node this is."""
        return self._ranks.local_rank

    def announce(self, *, total_steps: int | None, params: Mapping[str, object] | None, project: str | None = None) -> None:
        if not self._logs:
            return
        plain = {str(key): value if isinstance(value, str | int | float | bool) else str(value) for key, value in (params or {}).items()}
        told = {"experiment": str(project)} if project else {}
        self._spool.write({"kind": "init", "total": total_steps, "params": plain, "pid": os.getpid(), **told})

    # ── W&B's words ───────────────────────────────────────────────────────────

    @property
    def config(self) -> Config:
        """Params by item or attribute; what is set here is told."""
        if self._config is None:
            self.configure({})
        assert self._config is not None
        return self._config

    def configure(self, given: object) -> dict[str, object]:
        """Begin the config with these; the same as params are."""
        from onward.sdk.config import Config, as_mapping, flat

        values = as_mapping(given)
        self._config = Config(values, self._tell)
        return flat(values)

    @property
    def summary(self) -> Summary:
        """The last value of every metric, and what is set here."""
        if self._summary is None:
            from onward.sdk.config import Summary

            self._summary = Summary(self._last, self._tell)
        return self._summary

    def alert(self, title: str, text: str = "", level: object = "INFO", wait_duration: object = None) -> None:
        """A note for people, kept with the run and printed."""
        word = str(getattr(level, "value", level)).upper()
        print(f"onward: {word}: {title}{': ' if text else ''}{text}", file=sys.stderr)
        self._tell({"kind": "alert", "title": str(title), "text": str(text), "level": word})

    def _tell(self, record: dict[str, object]) -> None:
        if self._logs:
            self._spool.write(record)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()

    def listen_for_term(self) -> None:
        """Take a first SIGTERM as a request to stop: where a scheduler ends every process of a job at once (preemption),
        this leaves the training its grace time to save. A second one, or one sent to a forked worker, kills as usual."""
        if self.by_hand or threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            return
        owner = os.getpid()

        def on_term(number: int, _frame: object) -> None:
            if os.getpid() != owner or not self._ranks.several:  # one of several stays until all may leave
                signal.signal(number, signal.SIG_DFL)
            if os.getpid() != owner:
                os.kill(os.getpid(), number)
            self._stop.term()

        signal.signal(signal.SIGTERM, on_term)

    # ── while it trains ───────────────────────────────────────────────────────

    def log(self, metrics: Mapping[str, object], step: int | None = None, commit: bool | None = None) -> None:
        """Record values for a step (default: one more than the last). One line in a local file; never raises.

        `commit=False` keeps them for the next call, which logs them with its own.
        """
        if commit is False or self._held:
            joined = self._join(metrics, step, commit)
            if joined is None:
                return
            metrics, step = joined
        if step is None:
            step = self._step + 1
        elif step.__class__ is not int:
            step = int(step)
        self._step = step
        if not self._logs:
            return
        values = metrics.values()
        if set(map(type, values)) == _FLOATS and (total := sum(values)) - total == 0.0:  # type: ignore[arg-type]  # none that is not finite
            self._last.update(metrics)  # type: ignore[arg-type]
            self._spool.write_floats(step, tuple(metrics), values)  # type: ignore[arg-type]
        else:
            self._log_converted(metrics, step)

    def _join(self, metrics: Mapping[str, object], step: int | None, commit: bool | None) -> tuple[dict[str, object], int | None] | None:
        """With what was kept. None: these are kept too."""
        if self._held and step is not None and self._held_step not in (None, step):
            held, self._held = self._held, {}
            self.log(held, self._held_step)
            self._held_step = None
        self._held.update(metrics)
        self._held_step = self._held_step if step is None else step
        if commit is False:
            return None
        joined, self._held = (self._held, self._held_step), {}
        self._held_step = None
        return joined

    def _log_converted(self, metrics: Mapping[str, object], step: int) -> None:
        values: dict[str, float] = {}
        for key, value in metrics.items():
            try:
                values[str(key)] = value if type(value) is float else float(value)  # type: ignore[arg-type]
            except Exception:  # whatever the value's own conversion raises: an array's, a tensor's, a number beyond all floats
                self._say_unfit(str(key), value)
        self._last.update(values)
        self._spool.write({"s": step, "m": values})

    def should_stop(self) -> bool:
        """True once the job is about to end: save a checkpoint and leave. Costs about a microsecond.

        Of several processes each must call it once a step: it says True to all of them at the same call.
        """
        if not self._asked:
            self._asked = self._stop.call()
        return self._asked

    def should_checkpoint(self) -> bool:
        """True when it is time to save, by `checkpoints: every`. `auto`: sqrt(2 × time of a save × 12 h), at least a minute."""
        auto = max(60.0, math.sqrt(2 * max(self._save_seconds, 0.1) * 12 * 3600))
        interval = auto if self._every == "auto" else float(self._every)
        return time.monotonic() - self._saved_at >= interval

    # ── saving and resuming ───────────────────────────────────────────────────

    def resume(self) -> Path | None:
        """The folder of the newest checkpoint that verified, or None: start from the beginning."""
        return self._resume

    @property
    def resume_step(self) -> int | None:
        """The step of that checkpoint."""
        if self._resume is None:
            return None
        told = os.environ.get(contract.RESUME_STEP)
        return int(told) if told else _step_of(self._resume)

    @contextlib.contextmanager
    def checkpoint(self, step: int, *, written_by: str = "first") -> Iterator[Path]:
        """Give a folder to write into; when the block ends well it becomes the checkpoint of `step`, whole or not at all.

        Of several processes rank 0 writes it: what others write is thrown away. With `written_by="all"` every rank
        writes its share, files with names of their own, and the checkpoint is there once all shares are.

        A full disk costs this checkpoint, not the training: the older ones stay, and a warning is printed.
        """
        step = int(step)
        if step < 0:
            raise ValueError(f"checkpoint({step}): a step is 0 or more")
        if written_by not in ("first", "all"):
            raise ValueError(f"checkpoint({step}, written_by={written_by!r}): expected 'first' (rank 0 alone) or 'all'")
        began = time.monotonic()
        partial = self._checkpoints / f"{contract.PARTIAL_PREFIX}{contract.step_folder(step)}-{os.getpid()}"
        shared = written_by == "all" and self._ranks.several
        if shared:
            from onward.sdk.shares import partial_share

            partial = partial_share(self._checkpoints, step, self.rank)
        shutil.rmtree(partial, ignore_errors=True)
        try:
            _make_folder(partial)
            yield partial
            self._save_seconds = time.monotonic() - began
            if shared:
                self._commit_share(partial, step)
            elif self._ranks.first:
                self._commit(partial, step)
            else:
                shutil.rmtree(partial, ignore_errors=True)
        except Exception as error:
            full = _is_full(error, partial)
            shutil.rmtree(partial, ignore_errors=True)
            if not full:
                raise
            print(f"onward: checkpoint {step} skipped, {self._checkpoints} is full: {error}; training goes on", file=sys.stderr)
            self._spool.write({"kind": "skipped", "s": step, "reason": f"{self._checkpoints}: {error}"})
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        self._saved_at = time.monotonic()

    def _note(self, step: int) -> dict[str, object]:
        metrics = {str(k): v for k, v in self._last.items() if math.isfinite(v)}
        return {"step": step, "seconds": round(self._save_seconds, 3), "metrics": metrics}

    def _commit_share(self, partial: Path, step: int) -> None:
        from onward.sdk.shares import commit_share, join_by_hand

        commit_share(partial, self._checkpoints, step, self._ranks, self._note(step))
        if self.by_hand:
            joined = join_by_hand(self._checkpoints, step, self._ranks)
            if joined:
                self._commit(joined, step)

    def _commit(self, partial: Path, step: int) -> None:
        final = self._checkpoints / contract.step_folder(step)
        note = self._note(step)
        if self.by_hand:  # this folder is all there is: make the data last before the name does
            for path in partial.rglob("*"):
                if path.is_file():
                    with path.open("rb") as file:
                        os.fsync(file.fileno())
        write_whole(partial / contract.COMMIT_FILE, json.dumps(note))
        if final.exists():
            replaced = final.with_name(f"{contract.PARTIAL_PREFIX}replaced-{final.name}-{os.getpid()}")
            os.rename(final, replaced)
            os.rename(partial, final)
            shutil.rmtree(replaced, ignore_errors=True)
        else:
            os.rename(partial, final)
        if self.by_hand:
            sync_folder(self._checkpoints)
            for old in _committed(self._checkpoints)[:-_BY_HAND_KEEPS]:
                shutil.rmtree(old, ignore_errors=True)

    def finish(self, exit_code: int | None = None, quiet: bool | None = None) -> None:
        """Say that the training is complete. After `should_stop()` has said True this is no claim: the next leg goes on."""
        if self._held:
            self.log({})
        self.finished = True
        if not self._asked and self._logs and not exit_code:
            self._spool.write({"kind": "finish", "s": self._step})

    def _say_unfit(self, key: str, value: object) -> None:
        if key not in self._unfit:
            self._unfit.add(key)
            print(f"onward: {key}={value!r} is not a number and is not logged", file=sys.stderr)


def _make_folder(folder: Path) -> None:
    """No room even for a folder is not said here, where it would end the training: the first file will meet it."""
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise


def _is_full(error: Exception, folder: Path) -> bool:
    """Whether a save failed for want of room. Not every library says so: PyTorch's writer raises a RuntimeError. So try."""
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return True
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".room").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 1 << 20)
    except OSError as refused:
        return refused.errno in _NO_ROOM
    return False


def _committed(folder: Path) -> list[Path]:
    return sorted((path for path in folder.glob("step-*") if (path / contract.COMMIT_FILE).is_file()), key=_step_of)


def _step_of(folder: Path) -> int:
    return int(folder.name.split("step-")[-1])


# ── the same, for the run of this process ─────────────────────────────────────


def log(metrics: Mapping[str, object], step: int | None = None, commit: bool | None = None) -> None:
    init().log(metrics, step, commit)


def resume() -> Path | None:
    return init().resume()


def checkpoint(step: int, *, written_by: str = "first") -> contextlib.AbstractContextManager[Path]:
    return init().checkpoint(step, written_by=written_by)


def should_stop() -> bool:
    return init().should_stop()


def finish(exit_code: int | None = None, quiet: bool | None = None) -> None:
    init().finish(exit_code)


def alert(title: str, text: str = "", level: object = "INFO", wait_duration: object = None) -> None:
    init().alert(title, text, level)


def current(name: str) -> object:
    """`run`, `config` or `summary` of this process: names of a module that say something else each time."""
    return _run if name == "run" else getattr(init(), name)
