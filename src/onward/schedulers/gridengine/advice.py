"""What Grid Engine can say of a job beside its state: what its owner should know at submit, and why it waits."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping

from onward.errors import SchedulerUnavailable
from onward.model.job import JobId
from onward.model.spec import Resources
from onward.schedulers.command import Answer
from onward.schedulers.gridengine.output_parsing import read_duration
from onward.schedulers.gridengine.resource_options import options, shape_of

Ask = Callable[..., Answer]

_SHORT_NOTICE = 10  # seconds: less than this is rarely enough to save
_MOST_QUEUES = 8  # queried one by one
_MOST_REASONS = 2  # a large site gives one for each of its hosts


def advice(ask: Ask, resources: Resources, names: Mapping[str, str], *, notify: bool) -> Iterator[str]:
    """What this site will do to such a job that its owner should know. Nothing where it cannot be asked."""
    if resources.mem == 0:
        yield "mem 0: Grid Engine cannot request all memory of a node, so no memory is requested; the site's default applies"
    try:
        yield from _suitable(ask, resources, names)
        yield from _layout(ask, resources, names)
        if notify:
            yield from _notices(ask, resources)
    except SchedulerUnavailable:
        pass
    if not notify:
        yield "this profile requests no kill notice: a qdel kills the training before it can save"


def why(text: str) -> dict[JobId, str]:
    """Why jobs wait, from the text of `qstat -j`: the scheduler's own words, and what ends a hold."""
    return {job: said for job, lines in scheduling_info(text).items() if (said := _reason(job, lines))}


def scheduling_info(text: str) -> dict[JobId, list[str]]:
    """Its lines for each job, as they are."""
    found: dict[JobId, list[str]] = {}
    job, within = "", False
    for line in text.splitlines():
        key, colon, rest = line.partition(":")
        if line.startswith(" "):
            words = line
        elif colon:
            job = rest.strip() if key == "job_number" else job
            words = rest
            within = key == "scheduling info"
        else:
            within = False
        if within and job and words.strip():
            found.setdefault(JobId(job), []).append(words.strip())
    return found


def _reason(job: JobId, lines: list[str]) -> str:
    reasons = list(dict.fromkeys(line for line in lines if not line.startswith("(Collecting")))
    if any("hold state" in line for line in reasons):
        return f"held by a user; qrls {job} releases it"
    if any("job dependencies" in line for line in reasons):
        return "waits for the previous job"
    return _few([line for line in reasons if "cannot run" in line] or reasons)


def _few(lines: list[str]) -> str:
    """What is offered says more than which queue is out of the question."""
    lines = sorted(lines, key=lambda line: "offers only" not in line)
    more = f" (and {len(lines) - _MOST_REASONS} more like these)" if len(lines) > _MOST_REASONS else ""
    return "; ".join(lines[:_MOST_REASONS]) + more


def _suitable(ask: Ask, resources: Resources, names: Mapping[str, str]) -> Iterator[str]:
    """Whether the site, were it empty, could run such a job at all: qsub takes one that it never can."""
    asked = [word for option in options(resources, names) for word in shlex.split(option)]
    answer = ask("qsub", "-w", "v", "-b", "y", *asked, "/bin/true")
    said = f"{answer.err}\n{answer.out}"
    if "no suitable queues" not in said:
        return
    lines = [re.sub(r"^(?:Unable to run job: )?Job \d+ ", "", line.strip()) for line in said.splitlines() if "cannot run" in line]
    yield f"no queue of this site can run this request, so it would wait forever: {_few(lines) or 'no suitable queues'}"


def _layout(ask: Ask, resources: Resources, names: Mapping[str, str]) -> Iterator[str]:
    shape = shape_of(resources)
    if shape.nodes < 2 or "nodes" not in names:
        return
    environment = names["nodes"].format(slots=shape.slots)
    rule = re.search(r"^allocation_rule\s+(\S+)", ask("qconf", "-sp", environment).out, re.MULTILINE)
    if rule and rule[1] != str(shape.slots):
        yield (
            f"parallel environment {environment} has the allocation rule {rule[1]}: the job may get other than {shape.nodes} hosts "
            f"with {shape.slots} slots each; use one with the rule {shape.slots} to be sure"
        )


def _notices(ask: Ask, resources: Resources) -> Iterator[str]:
    """Where no queue is named, only if every queue that the job can get into warns too late."""
    queues = [resources.partition] if resources.partition else ask("qconf", "-sql").out.split()[:_MOST_QUEUES]
    texts = {queue: ask("qconf", "-sq", queue.split("@")[0]).out for queue in queues}
    if not resources.partition:
        texts = {queue: text for queue, text in texts.items() if (_seconds(text, "h_rt") or 1e9) >= (resources.time or 0)}
    notices = {queue: seconds for queue, text in texts.items() if (seconds := _seconds(text, "notify")) is not None}
    if all(seconds < _SHORT_NOTICE for seconds in notices.values()):
        for queue, seconds in notices.items():
            yield f"queue {queue} leaves {seconds} s between its kill notice and the kill: a qdel may kill the training before it has saved"


def notify_seconds(queue: str) -> float | None:
    """Of a queue's configuration: seconds between the notice and the kill."""
    return _seconds(queue, "notify")


def _seconds(queue: str, key: str) -> int | None:
    match = re.search(rf"^{key}\s+([\d:]+)", queue, re.MULTILINE)
    return read_duration(match[1]) if match else None
