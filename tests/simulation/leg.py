"""One simulated leg: the real loop that watches a training, around a training, a publisher and a scheduler that are simulated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from types import SimpleNamespace

from onward.checkpoints.publishing.order import may_skip, next_to_publish
from onward.checkpoints.publishing.publisher import PublishReport
from onward.model import events as ev
from onward.model.run import Leg
from onward.model.spec import CheckpointRule
from onward.sdk.contract import EXIT_AGAIN
from onward.supervisor.leg.watch import TrainingWatch
from onward.supervisor.stop.plan import StopPlan, StopPlanner
from onward.supervisor.stop.store_probe import StoreSpeed
from onward.supervisor.stop.time_limit import TimeLimit
from tests.histories import make_spec
from tests.simulation.clock import SimClock
from tests.simulation.world import PROBE_NOISE, OnNode, World

Policy = Callable[[Iterable[Leg], float], Callable[[StopPlan], StopPlan] | None]  # of earlier legs and the limit; None: the learning plan


class Killed(Exception):
    """The scheduler or the node took the job away: nothing of it goes on."""


class SimProbe:
    """Measures the simulated store, as the real one does."""

    def __init__(self, world: World, clock: SimClock) -> None:
        self._world, self._clock = world, clock
        self._found: list[StoreSpeed] = []
        self._busy = False

    def want(self, size: int) -> None:
        if size and not self._busy:
            self._busy = True
            began = self._clock.now()
            end = self._world.store.finish(
                began, size, share=self._world.rng.uniform(1 - PROBE_NOISE, 1 + PROBE_NOISE) * self._world.setup.probe_bias
            )
            self._clock.at(end, lambda: self._done(end - began, size))

    def _done(self, seconds: float, size: int) -> None:
        self._busy = False
        self._found.append(StoreSpeed(at=self._clock.now(), seconds=seconds, bytes=size))

    def take(self) -> list[StoreSpeed]:
        found, self._found = self._found, []
        return found


class SimChild:
    pid = 0

    def __init__(self, leg: SimLeg) -> None:
        self._leg = leg
        self.gone = threading.Event()
        self.gone.set()  # nothing outlives it

    @property
    def running(self) -> bool:
        return self._leg.code is None

    @property
    def code(self) -> int | None:
        return self._leg.code

    def signal(self, number: int) -> None: ...

    def kill(self, number: int = SIGKILL) -> None:
        self._leg.end_training(number)


@dataclass(kw_only=True)
class SimLeg:
    world: World
    clock: SimClock
    number: int
    nodes: tuple[int, ...]
    deadline: float
    history: list[Leg]
    shaped: Callable[[StopPlan], StopPlan] | None = None
    preempted_at: float | None = None
    grace: float = 30.0
    lost_at: float | None = None
    events: list[ev.Event] = field(default_factory=list)
    step: float = 0.0  # seconds of training that this state holds
    code: int | None = None
    trained: float = 0.0
    _since: float | None = None  # training goes on since then; None: it saves, or has ended
    _stop_wanted: bool = False
    _reports: list[PublishReport] = field(default_factory=list)
    _waiting: list[int] = field(default_factory=list)
    _busy: int | None = None  # the step that is being published
    _began: float = 0.0
    _closed: bool = False
    _saves: dict[int, float] = field(default_factory=dict)

    # ── the life of the leg, as supervisor.main has it ────────────────────────

    def live(self) -> str:
        """How it ended: time_limit, preempted, node_lost or killed at the limit."""
        clock, setup = self.clock, self.world.setup
        try:
            self._schedule_faults()
            self._salvage()
            found = self.world.newest
            clock.until(max(clock.now(), self.world.store.finish(clock.now(), setup.checkpoint if found else 0)) + setup.start)
            self.step = float(found)
            self._resume_training()
            clock.at(clock.now() + setup.every, self._periodic_save)
            training = self._training()
            training.watch()
            self.asked_at = training.asked_at
            gone = clock.now()
            self._drain(training)
            training.stop_seconds = gone - training.asked_at if training.asked_at else None
            self._leave(training)
            end = "preempted" if training.asked == "signal" else "time_limit"
            self.events.append(
                ev.Ended(
                    leg=self.number,
                    at=clock.now(),
                    end=end,
                    reason="",
                    stop_seconds=training.stop_seconds,
                    stop_cut=training.ended,
                )
            )
            return end
        except Killed as killed:
            self._pause_training()
            return str(killed)
        finally:
            clock.clear()

    asked_at: float | None = None

    def _schedule_faults(self) -> None:
        if self.preempted_at is not None:
            at = self.preempted_at
            self.clock.at(at, lambda: setattr(self.signals, "ending", True))
            self.clock.at(at + self.grace, lambda: self._die("preempted"))
        if self.lost_at is not None:
            self.clock.at(self.lost_at, self._lose_node)
        self.clock.at(self.deadline, lambda: self._die("killed at the limit"))

    def _die(self, how: str) -> None:
        raise Killed(how)

    def _lose_node(self) -> None:
        """The node's disk goes with it. That is a fault, not a deletion."""
        self.world.on_nodes = [kept for kept in self.world.on_nodes if kept.node != self.nodes[0]]
        raise Killed("node_lost")

    def __post_init__(self) -> None:
        self.signals = SimpleNamespace(ending=False, warned=False, deleted=False, given_up=False, settle=lambda: None)

    def _training(self) -> TrainingWatch:
        child = SimChild(self)
        ranks = SimpleNamespace(
            termed=False, exits={}, world=1, first_failure=lambda before=0.0: None, left_alone=lambda before: "", code=lambda code: code
        )
        rank_group = SimpleNamespace(
            ranks=ranks,
            remark="",
            hears_all=True,
            look=lambda now: None,
            ask=self._ask,
            signal=lambda number: True,
            kill=self.end_training,
            saving=lambda now: self._since is None and self.code is None,
            silent_nodes=lambda since: [],
            missed=list,
            refused=list,
        )
        planner = StopPlanner.of(self.history, limit=self.deadline - self.clock.now(), several=True)
        limit = TimeLimit(self.deadline, self.clock, grace=lambda: self.grace)
        limit.look()
        training = TrainingWatch(
            spec=make_spec(),
            leg=self.number,
            child=child,  # type: ignore[arg-type]
            rank_group=rank_group,  # type: ignore[arg-type]
            local=SimpleNamespace(log=lambda leg, kind: Path("/nowhere")),  # type: ignore[arg-type]
            journal=SimpleNamespace(write=self.events.append),  # type: ignore[arg-type]
            publisher=SimpleNamespace(reports=self._take_reports),  # type: ignore[arg-type]
            spool=SimpleNamespace(read=lambda: SimpleNamespace(records=0, skipped=[])),  # type: ignore[arg-type]
            signals=self.signals,  # type: ignore[arg-type]
            folder=SimpleNamespace(stop_requested=False, fenced_by=0, deleted=False),  # type: ignore[arg-type]
            planner=planner,
            limit=limit,
            clock=self.clock,
            woken=SimpleNamespace(wait=self._wait, clear=lambda: None, set=lambda: None),  # type: ignore[arg-type]
            probe=SimProbe(self.world, self.clock),  # type: ignore[arg-type]
            shaped=self.shaped or (lambda plan: plan),
        )
        self._watched = training
        return training

    def _wait(self, tick: float) -> None:
        """Jump to the next thing that happens, or that the loop would do."""
        now, training = self.clock.now(), self._watched
        plan = training.plan(now)
        due = plan.kill_at(self.deadline, asked_at=training.asked_at) if training.asked else plan.ask_at(self.deadline)
        soon = 30.0 if self._busy is not None or self._near_its_end(now) else 300.0
        self.clock.until(max(now + tick, min(self.clock.next_event(), due or now + soon, now + soon)))

    def _near_its_end(self, now: float) -> bool:
        return now > self.deadline - 3 * 3600

    # ── the training ──────────────────────────────────────────────────────────

    def _resume_training(self) -> None:
        self._since = self.clock.now()

    def _pause_training(self) -> None:
        if self._since is not None:
            done = self.clock.now() - self._since
            self.step, self.trained, self._since = self.step + done, self.trained + done, None

    def _periodic_save(self) -> None:
        if self.code is None and not self._stop_wanted:
            self._save(then=self._after_periodic_save)

    def _after_periodic_save(self) -> None:
        if self._stop_wanted:
            self._save(then=self._exit)
            return
        self._resume_training()
        self.clock.at(self.clock.now() + self.world.setup.every, self._periodic_save)

    def _ask(self) -> None:
        """The training looks at its next step, saves and leaves; in the middle of a save it does so after it."""
        if self._stop_wanted:
            return
        self._stop_wanted = True
        if self._since is not None:
            self.clock.at(self.clock.now() + self.world.rng.uniform(0, self.world.setup.step), lambda: self._save(then=self._exit))

    def _save(self, then: Callable[[], None]) -> None:
        if self.code is not None:
            return
        self._pause_training()
        seconds = self.world.save_seconds()
        step = round(self.step)

        def commit() -> None:
            if self.code is None:
                self._commit(step, seconds)
                then()

        self.clock.at(self.clock.now() + seconds, commit)

    def _commit(self, step: int, seconds: float) -> None:
        if not self.world.has_room(self.nodes[0], restored=self.step > self.trained):
            self.world.skipped_saves += 1
            return
        self._saves[step] = seconds
        self.world.on_nodes.append(OnNode(step=step, node=self.nodes[0], leg=self.number))
        self._waiting.append(step)
        self._publish_next()

    def _exit(self) -> None:
        self.code = EXIT_AGAIN

    def end_training(self, number: int = SIGKILL) -> None:
        if number == SIGKILL and self.code is None:
            self._pause_training()
            self.code = -number

    # ── the publisher ────────────────────────────────────────────────────────────

    RULE = CheckpointRule(keep=3)

    def _take_reports(self) -> list[PublishReport]:
        found, self._reports = self._reports, []
        return found

    def _publish_next(self) -> None:
        mine = [step for leg, step in self.world.published if leg == self.number]
        for at in reversed(may_skip(self._waiting, self.RULE, closed=self._closed, newest=max(mine, default=-1), published=len(mine))):
            self._remove(self._waiting.pop(at))
        if self._busy is not None or not self._waiting:
            return
        step = self._waiting.pop(next_to_publish(self._waiting, self.RULE, closed=self._closed))
        self._busy, self._began = step, self.clock.now()
        self._reports.append(PublishReport(kind="publishing", step=step, bytes=self.world.setup.checkpoint, save_seconds=self._saves[step]))
        began = self._began

        def done() -> None:
            if (self._busy, self._began) == (step, began):
                self._busy = None
                self._published(step, self.clock.now() - began)
                self._publish_next()

        self.clock.at(self.world.publish_until(began), done)

    def _published(self, step: int, seconds: float) -> None:
        self.world.published.append((self.number, step))
        self._reports.append(
            PublishReport(
                kind="published", step=step, bytes=self.world.setup.checkpoint, save_seconds=self._saves[step], stage_seconds=seconds
            )
        )
        self._remove(step)

    def _remove(self, step: int) -> None:
        for kept in [kept for kept in self.world.on_nodes if kept.step == step and kept.leg == self.number]:
            self.world.delete_from_node(kept)

    def _drain(self, training: TrainingWatch) -> None:
        """As the supervisor does: what waits is published until just before the deadline, the newest first."""
        self._closed = True
        if self._busy is not None and any(step > self._busy for step in self._waiting):
            self._waiting.insert(0, self._busy)
            self._busy = None  # the older one makes way
        self._publish_next()
        until = self.deadline - 1.0
        while (self._busy is not None or self._waiting) and self.clock.now() < until:
            self.clock.until(min(self.clock.next_event(), until))
        if self._busy is not None:
            spent = self.clock.now() - self._began
            self.events.append(
                ev.Missed(
                    leg=self.number, at=self.clock.now(), step=self._busy, reason="", bytes=self.world.setup.checkpoint, seconds=spent
                )
            )
        training.take_reports(self._take_reports())

    # ── what stays on nodes ───────────────────────────────────────────────────

    def _leave(self, training: TrainingWatch) -> None:
        for kept in [kept for kept in self.world.on_nodes if kept.leg == self.number and kept.step <= self.world.newest]:
            self.world.delete_from_node(kept)

    def _salvage(self) -> None:
        """What earlier legs left on these nodes and nobody published: published now, before the training starts."""
        for kept in sorted((k for k in self.world.on_nodes if k.node in self.nodes), key=lambda k: -k.step):
            if kept.step > self.world.newest:
                self.clock.until(self.world.publish_until(self.clock.now()))
                self.world.published.append((kept.leg, kept.step))
            self.world.delete_from_node(kept)
