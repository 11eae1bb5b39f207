"""The Run a training script holds: log, resume, checkpoint, stop. Works the same with no supervisor, server or cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path

from onward.sdk import contract
from onward.sdk.ranks import Ranks, ranks_of
from onward.sdk.saving import CheckpointSaver, committed, step_of
from onward.sdk.spool import WIDE, SpoolWriter
from onward.sdk.stderr import say, say_once
from onward.sdk.stop import stop_source
from onward.sdk.wandb.run_methods import WandbRun, flattened

_FLOATS = {float}


class TrainingRun(WandbRun):
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
        asked: Mapping[str, object] | None = None,
    ) -> None:
        self.folder = folder
        self.leg = leg
        self.by_hand = by_hand
        self.asked = dict(asked or {})
        self.disabled = self.asked.get("mode") == "disabled"
        self.finished = False
        self._resume = resume
        self._ranks = ranks or Ranks()
        self._may_log = (self._ranks.first or log_from == "all") and not self.disabled
        self._logs = self._may_log
        self._spool = SpoolWriter(str(spool), leg=leg, rank=self._ranks.rank if self._ranks.several else None)
        self._stop = stop_source(os.environ, self._ranks, agree=agree)
        self._step = -1
        self._asked_to_stop = False
        self._last: dict[str, float] = {}
        self._saving = CheckpointSaver(checkpoints, ranks=self._ranks, by_hand=by_hand, metrics=self._last, skipped=self._skipped)
        self._held: dict[str, object] = {}
        self._held_step: int | None = None
        self._saved = {}
        self._unfit = set()

    @classmethod
    def of_environment(
        cls, *, name: str | None, log_from: str = "first", agree: bool = True, asked: Mapping[str, object] | None = None
    ) -> TrainingRun:
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
                asked=asked,
            )
        return cls._by_hand(ranks, log_from, {**(asked or {}), "name": name})

    @classmethod
    def _by_hand(cls, ranks: Ranks, log_from: str, asked: dict[str, object]) -> TrainingRun:
        from onward.sdk.unmanaged import exit_state
        from onward.sdk.unmanaged import folder as by_hand

        id = str(asked.get("id") or "") or None
        folder = by_hand.folder_for(str(asked["name"] or by_hand.script_name()), ranks, id=id, resume=asked.get("resume"))
        done = committed(folder / "checkpoints")
        run = cls(
            folder=folder,
            leg=by_hand.next_leg(folder),
            checkpoints=folder / "checkpoints",
            spool=folder / "spool",
            resume=done[-1] if done else None,
            by_hand=True,
            ranks=ranks,
            log_from=log_from,
            asked=asked,
        )
        if id and run.leg > 1:
            run._step = by_hand.last_step(folder)
        if run._logs and ranks.first:
            exit_state.watch_exit(run, run._ended)
        if not run.disabled:
            (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
            if contract.RUN_DIR not in os.environ and ranks.first:
                say(f"unmanaged run in {folder} (set ONWARD_RUN_DIR={folder} to continue it)")
        return run

    # ── which process this is ─────────────────────────────────────────────────

    @property
    def rank(self) -> int:
        """This process's rank in the training; 0 if it is the only one."""
        return self._ranks.rank

    @property
    def world_size(self) -> int:
        """How many processes train together."""
        return self._ranks.world_size

    @property
    def local_rank(self) -> int:
        """This process's rank on its node."""
        return self._ranks.local_rank

    def announce(self, *, total_steps: int | None, params: Mapping[str, object] | None, project: str | None = None) -> None:
        if not self._logs:
            return
        plain = {str(key): value if isinstance(value, (str, int, float, bool)) else str(value) for key, value in (params or {}).items()}
        fields: dict[str, object] = {"experiment": str(project)} if project else {}
        if self.by_hand:
            from onward.sdk.process_identity import this_process, user_name

            fields.update(name=self.name, user=user_name(), process=this_process())
        self._spool.write({"kind": "init", "total": total_steps, "params": plain, "pid": os.getpid(), **fields})
        self.describe()

    def _tell(self, record: dict[str, object]) -> None:
        if self._logs:
            self._spool.write(record)

    def __enter__(self) -> TrainingRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is None:
            self.finish()
        elif self.by_hand:
            from onward.sdk.unmanaged.exit_state import exit_state

            self._ended(*exit_state(error, None))

    def listen_for_term(self) -> None:
        """Treat the first SIGTERM as a request to stop: if a scheduler signals every process of a job at once (preemption),
        this leaves the training its grace time to save. A second one, or one to a forked worker, kills as usual."""
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

    def log(self, metrics: Mapping[str, object], step: int | None = None, commit: bool | None = None, sync: object = None) -> None:
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
            self._pass_over(metrics)
            return
        values = metrics.values()
        if set(map(type, values)) == _FLOATS and (total := sum(values)) - total == 0.0:  # type: ignore[arg-type]  # none that is not finite
            self._last.update(metrics)  # type: ignore[arg-type]
            self._spool.write_floats(step, tuple(metrics), values)  # type: ignore[arg-type]
        else:
            self._log_converted(metrics, step)

    def _pass_over(self, metrics: Mapping[str, object]) -> None:
        """By a process that does not log. Values are kept as they are: to ask a GPU for them would hold the training up."""
        if self.finished:
            say_once("log() after finish() is not recorded; init() starts another run")
        elif self.disabled:
            self._last.update(flattened(metrics))  # type: ignore[arg-type]  # for who reads its summary

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
        for key, value in flattened(metrics).items():
            try:
                values[key] = value if type(value) is float else float(value)  # type: ignore[arg-type]
            except Exception:  # whatever the value's own conversion raises: an array's, a tensor's, a number beyond all floats
                values.update(self._log_unfit(key, value, step))
        self._last.update(values)
        if len(values) < WIDE:
            self._spool.write({"s": step, "m": values})
        else:
            self._spool.write_floats(step, tuple(values), values.values())

    def _log_unfit(self, key: str, value: object, step: int) -> dict[str, float]:
        try:
            found = self._log_other(key, value, step)
        except Exception:  # a value that answers no question
            found = None
        if found is None and key not in self._unfit:
            self._unfit.add(key)
            say(f"{key}={value!r} is not a number and is not logged")
        return found or {}

    def should_stop(self) -> bool:
        """True once the job is about to end: save a checkpoint and exit. Costs about a microsecond.

        In a training of several processes each must call it once per step; it returns True at the same call in all of them.
        """
        if not self._asked_to_stop:
            self._asked_to_stop = self._stop.call()
        return self._asked_to_stop

    # ── saving and resuming ───────────────────────────────────────────────────

    def should_checkpoint(self) -> bool:
        """True when it is time to save, by `checkpoints: every`. `auto`: sqrt(2 × time of a save × 12 h), at least a minute."""
        return self._saving.due()

    def resume(self) -> Path | None:
        """The folder of the newest verified checkpoint, or None: start from scratch."""
        return self._resume

    @property
    def resume_step(self) -> int | None:
        """The step of that checkpoint."""
        if self._resume is None:
            return None
        text = os.environ.get(contract.RESUME_STEP)
        return int(text) if text else step_of(self._resume)

    def checkpoint(self, step: int, *, written_by: str = "first") -> contextlib.AbstractContextManager[Path]:
        """Yields a folder to write into; if the block ends without an error, it becomes the checkpoint of `step`, all or nothing.

        Of several processes rank 0 writes it; what others write is discarded. With `written_by="all"` every rank
        writes its share, files with unique names, and the checkpoint exists once all shares do.

        A full disk costs this checkpoint, not the training: the older ones stay, and a warning is printed.
        """
        return self._saving.checkpoint(step, written_by=written_by)

    def _skipped(self, step: int, why: str) -> None:
        self._spool.write({"kind": "skipped", "s": step, "reason": why})

    # ── its end ───────────────────────────────────────────────────────────────

    def finish(self, exit_code: int | None = None, quiet: bool | None = None) -> None:
        """Mark the training as complete. After `should_stop()` returned True it does not: the next leg continues."""
        if self.finished:
            return
        if self._held:
            self.log({})
        self._keep_saved()
        if self.by_hand:
            from onward.sdk.unmanaged.exit_state import exit_state

            self._ended(*exit_state(None, exit_code))
            return
        if not self._asked_to_stop and not exit_code:
            self._tell({"kind": "finish", "s": self._step})
        self.finished, self._logs = True, False

    def _ended(self, state: str, reason: str) -> None:
        """Nothing else records how an unmanaged run ended; one that was asked to stop will be continued."""
        from onward.sdk.unmanaged import exit_state

        exit_state.forget_exit(self)
        if state == "finished" and self._asked_to_stop:
            state, reason = exit_state.exit_state(None, contract.EXIT_AGAIN)
        self._tell({"kind": "finish", "s": self._step} if state == "finished" else {"kind": "end", "state": state, "reason": reason[:2000]})
        self.finished, self._logs = True, False

    def reopen(self) -> None:
        """In a job there is one run: a script that finishes it and starts another continues it."""
        if self.finished and not self.by_hand:
            say_once("inside a job there is one run: calls after finish() also go to it")
            self.finished, self._logs = False, self._may_log
            self._tell({"kind": "reopen"})


def hand_over(run: TrainingRun, step: int, *, written_by: str, file: str, began: float) -> dict[str, object]:
    """For onward.torch: a save that another process writes."""
    return run._saving.handed_over(step, written_by=written_by, file=file, began=began)
