"""Why a run is in the state it is in, and what can be done about it: a sentence each. Pure; folder, server and CLI share it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onward.model.job import JobId, JobState, JobStatus
from onward.model.policy.leg_history import lacks_progress, not_stored
from onward.model.policy.lifecycle import own_checkpoints_advice
from onward.model.run import Leg, LegEnd, Run, RunState
from onward.model.stop_reason import stop_reason_text

JobAnswers = Mapping[JobId, JobStatus]

NO_ANSWER = "the scheduler did not answer"
NO_JOB = "no job is queued for it"
_REPAIR = "`onward tend` or `onward show` queues one"


def why(run: Run, answers: JobAnswers | None, *, unheard: str = NO_ANSWER, words: Callable[[str], str] = str) -> str:
    """`answers`: what the scheduler says of the run's live jobs; None where it did not say, and `unheard` tells why not.

    `words` makes a sentence of a scheduler's own reason.
    """
    if run.closed:
        return run.closed.cause
    if run.cancel:
        return f"cancelled by {run.cancel.by}; its jobs have not ended yet: run onward cancel again, or `onward tend`"
    last = run.last_leg
    if run.state is RunState.RUNNING and last and last.claimed:
        return _at_work(last, answers, words) + _no_place_yet(run, last) + _successor_lost(run, last, answers)
    queued = [leg for leg in run.legs.values() if not leg.claimed and not leg.end and leg.submission]
    if queued:
        return _in_the_queue(max(queued, key=lambda leg: leg.number), answers, unheard, words)
    refused = refusal(run)
    if refused:
        return (
            f"the scheduler refused the next leg: {refused}; `onward tend` tries again; to change the request, onward cancel, then resume"
        )
    if awaits_its_turn(run):
        return "it waits for its turn in its pipeline"
    return f"{_failure(last)}{NO_JOB}: {_REPAIR}"


def no_job_since(run: Run, answers: JobAnswers | None = None) -> float | None:
    """Since when an open run has no job: the last moment at which one is known to have been there. None: it has one, or needs none.

    Without `answers` of the scheduler, a job that the journals know of is taken to be there.
    """
    if run.closed or run.cancel or awaits_its_turn(run):
        return None
    open_legs = [leg for leg in run.legs.values() if leg.end is None and (leg.claimed or leg.submission)]
    if any(_may_have_a_job(leg, answers) for leg in open_legs):
        return None
    moments = [run.spec.created, run.resumed.at if run.resumed else 0.0]
    for leg in run.legs.values():
        status = status_of(leg, answers or {})
        moments += [at for at in (leg.ended, leg.claimed.at if leg.claimed else None, status.ended if status else None) if at]
        moments += [s.at for s in leg.submissions.values() if s.job] + [p.at for p in leg.published]
    return max(moments)


def _may_have_a_job(leg: Leg, answers: JobAnswers | None) -> bool:
    if leg.job is None:
        return leg.submission is not None and not leg.submission.limited  # nobody heard whether it was accepted
    status = status_of(leg, answers) if answers is not None else None
    return answers is None or (status is not None and status.state.live)


def _failure(last: Leg | None) -> str:
    """How the last leg failed, where nobody has drawn a consequence from it yet."""
    if last is None or last.end not in (LegEnd.CRASHED, LegEnd.STALLED):
        return ""
    return f"leg {last.number} ended ({state_words(last.end)}): {last.reason}; "


def awaits_its_turn(run: Run) -> bool:
    """Part of a pipeline, which has not asked for a job for it yet."""
    return run.spec.member is not None and not run.legs


def next_action(run: Run) -> str:
    """What a person can do now; empty where the run needs nobody."""
    if run.closed:
        return run.closed.next
    if run.cancel:
        return f"run onward cancel {run.spec.id} again to end its remaining jobs"
    if awaits_its_turn(run):
        return ""
    if run.state is not RunState.RUNNING and not any(leg.submission for leg in run.legs.values() if not leg.claimed and not leg.end):
        again = "cancel it, then resume it with other resources" if refusal(run) else "run onward tend"
        return f"{again}: onward cancel {run.spec.id}" if refusal(run) else again
    wasted = lacks_progress(run)
    if wasted is None or any(leg.published for leg in run.legs.values()):
        return ""
    return (
        f"leg {wasted.number} met its time limit and saved nothing that Onward can see; another such leg ends the run. "
        f"{own_checkpoints_advice(run)} (onward cancel {run.spec.id} first)"
    )


def refusal(run: Run) -> str:
    """The scheduler's words where it refused the next leg; else empty."""
    refusals = [s.refused for leg in run.legs.values() if not leg.claimed for s in leg.submissions.values() if s.refused]
    return refusals[-1] if refusals else ""


def never_taken(run: Run) -> str:
    """The scheduler's words where it refused a run's first leg, and nothing of the run is queued; else empty."""
    began = run.last_leg is not None or any(leg.submission for leg in run.legs.values())
    return "" if began else refusal(run)


def status_of(leg: Leg, answers: JobAnswers) -> JobStatus | None:
    """What is said of the leg's own job. One of another name has only been given its id, after the scheduler forgot ours."""
    status = answers.get(JobId(leg.job)) if leg.job else None
    return None if status and leg.submissions and status.name not in leg.submissions else status


def state_words(state: str) -> str:
    """A state or an end, for people: `timed_out` is timed out."""
    return state.replace("_", " ")


def _at_work(leg: Leg, answers: JobAnswers | None, words: Callable[[str], str]) -> str:
    assert leg.claimed is not None
    status = status_of(leg, answers or {})
    if answers is not None and (status is None or not status.state.live):
        known = state_words(status.state) if status else "unknown to the scheduler"
        return f"leg {leg.number} is gone ({known}); the next leg or `onward tend` finds out why"
    if status is not None and status.state in (JobState.QUEUED, JobState.HELD):
        return _back_in_the_queue(leg, status, words)
    if status is not None and status.paused:
        return f"leg {leg.number} is suspended on {', '.join(leg.claimed.hosts)}, and continues when the scheduler resumes job {leg.job}"
    asked = f", asked to save and stop: {stop_reason_text(leg.asked.reason) if leg.asked.reason else leg.asked.why}" if leg.asked else ""
    return f"leg {leg.number} runs on {', '.join(leg.claimed.hosts)}{asked}{_waits_for_room(leg)}"


def _waits_for_room(leg: Leg) -> str:
    """What it saved and could not be stored so far."""
    step = not_stored(leg)
    if step is None:
        return ""
    reason = max(leg.missed, key=lambda missed: missed.step).reason
    since = f"since step {leg.last_published}" if leg.last_published is not None else "of this leg"
    return f"; no checkpoint {since} could be stored; the newest, of step {step}, is retried: {reason}"


def _back_in_the_queue(leg: Leg, status: JobStatus, words: Callable[[str], str]) -> str:
    """It has begun, and somebody has put its job back: it begins again under the same number of a job."""
    held = " and is held" if status.state is JobState.HELD else ""
    why = f": {words(status.reason)}" if status.reason else ""
    return f"job {leg.job} of leg {leg.number} was stopped and requeued{held}{why}; the run continues when it starts again"


def _successor_lost(run: Run, last: Leg, answers: JobAnswers | None) -> str:
    """Where the next leg's job was queued, and has ended before it could begin."""
    following = run.legs.get(last.number + 1)
    status = status_of(following, answers or {}) if following and not following.claimed and not following.end else None
    if following is None or status is None or status.state.live:
        return ""
    by = f" ({status.reason})" if status.reason else ""
    return f"; job {following.job}, queued for leg {following.number}, is {state_words(status.state)}{by} and will not begin"


def _no_place_yet(run: Run, last: Leg) -> str:
    """Where the next leg cannot be queued while this one runs."""
    following = run.legs.get(last.number + 1)
    standing = following.submission if following else None
    if standing is None or not standing.limited:
        return ""
    return f"; leg {last.number + 1} waits for a place in the queue, because a limit on the number of jobs is reached; Onward keeps trying"


def _in_the_queue(leg: Leg, answers: JobAnswers | None, unheard: str, words: Callable[[str], str]) -> str:
    if leg.submission and leg.submission.limited:
        return (
            f"leg {leg.number} waits for a place in the queue, because a limit on the number of jobs is reached "
            f"({leg.submission.limited}); `onward tend` or a running `onward up` submits it as soon as one of your jobs has ended"
        )
    if leg.job is None:
        return f"it is unknown whether the job for leg {leg.number} was accepted: `onward tend` looks it up"
    status = status_of(leg, answers or {})
    if status is None:
        said = f"the scheduler does not know its job, so {NO_JOB}: {_REPAIR}" if answers is not None else unheard
        return f"leg {leg.number} was submitted" + (f"; {said}" if said else "")
    if status.state is JobState.RUNNING:
        return f"leg {leg.number} is starting"
    if not status.state.live:
        return f"the job of leg {leg.number} ended before the leg began ({state_words(status.state)}): `onward tend` finds out why"
    return f"leg {leg.number} is {state_words(status.state)}" + (f": {words(status.reason)}" if status.reason else "")
