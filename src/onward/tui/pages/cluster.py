"""Screens 3 and 4: a cluster's queue and its nodes, as somebody last saw them. Pure."""

from __future__ import annotations

from onward.model.cluster import ClusterJob, ClusterSnapshot, Gpus, Node
from onward.tui.drawing.text import Block, Line, bar, boxed, clock, cut, fit, line, many, size, span, titled, wrapped
from onward.tui.sources.interface import ShownCluster
from onward.tui.state import LOOKING, NODES, QUEUE, ScreenData, ScreenState

_ABOUT = 4  # lines about what is under the cursor
_NODE = 26  # cells of a node on the map
_STATES = {"free": " ", "partly": "·", "full": "■", "draining": "↓", "drained": "d", "down": "x", "reserved": "r", "unknown": "?"}


def queue_page(view: ScreenState, board: ScreenData, *, width: int, height: int, now: float) -> Block:
    picture = board.picture
    jobs = shown_jobs(view, board)
    head = _title(picture, f"{view.pane} {many(len(jobs), 'job')}", width, now)
    if picture is None or picture.snapshot is None:
        return [head, *_unseen(board, picture, width=width, height=height - 1)]
    at = _cursor(view, QUEUE, len(jobs))
    rows = height - 2 - _ABOUT
    first = max(0, min(at - rows // 2, len(jobs) - rows))
    body = [_job(job, width, here=first + n == at, now=now) for n, job in enumerate(jobs[first : first + rows])]
    if not jobs:
        words = "you have no jobs here: Tab shows everyone's" if view.pane == "mine" else "no jobs"
        body = [line(fit(f"  {words}", width), "dim")]
    columns = line(fit(_columns(width), width), "dim")
    return [head, columns, *boxed(body, width, rows), *_about_job(jobs[at] if jobs else None, width, now)]


def nodes_page(view: ScreenState, board: ScreenData, *, width: int, height: int, now: float) -> Block:
    picture = board.picture
    nodes = picture.snapshot.nodes if picture and picture.snapshot else ()
    head = _title(picture, many(len(nodes), "node"), width, now)
    if picture is None or picture.snapshot is None:
        return [head, *_unseen(board, picture, width=width, height=height - 1)]
    across = nodes_across(width)
    at = _cursor(view, NODES, len(nodes))
    rows = height - 2 - _ABOUT
    total = -(-len(nodes) // across)
    first = max(0, min(at // across - rows // 2, total - rows))
    body: Block = []
    for y in range(first, min(first + rows, total)):
        places = range(y * across, min((y + 1) * across, len(nodes)))
        body.append(cut([span for n in places for span in _node(nodes[n], width // across, here=n == at)], width))
    legend = "  ".join(f"{mark} {state}" for state, mark in _STATES.items() if mark.strip())
    about = _about_node(nodes[at] if nodes else None, picture.snapshot, width, now)
    return [head, line(fit(f" {legend}", width), "dim"), *boxed(body, width, rows), *about]


def shown_jobs(view: ScreenState, board: ScreenData) -> list[ClusterJob]:
    snapshot = board.picture.snapshot if board.picture else None
    words = view.filter.lower().split()
    jobs = [job for job in (snapshot.jobs if snapshot else ()) if view.panes.get(QUEUE, 0) == 1 or job.mine]
    return [job for job in jobs if all(word in f"{job.id} {job.name} {job.user} {job.queue} {job.state}".lower() for word in words)]


def nodes_across(width: int) -> int:
    return max(width // _NODE, 1)


def queue_rows(height: int) -> int:
    return max(height - 2 - _ABOUT, 1)


def _cursor(view: ScreenState, screen: int, count: int) -> int:
    return max(0, min(view.at.get(screen, 0), count - 1))


def _title(picture: ShownCluster | None, what: str, width: int, now: float) -> Line:
    if picture is None:
        return titled(what, width)
    age = f"seen {span(picture.age)} ago" if picture.snapshot else "no data yet"
    several = " · ← → cluster" if len(picture.others) > 1 else ""
    trouble = f" · {picture.trouble}" if picture.trouble and picture.snapshot else ""
    return titled(f"{picture.name} · {what} · {age}{several}{trouble}", width, focus=True)


def _unseen(board: ScreenData, picture: ShownCluster | None, *, width: int, height: int) -> Block:
    """Without a picture, what the runs themselves say of their waiting."""
    words = picture.trouble if picture else LOOKING
    lines: Block = [line(fit(f"  {part}", width), "dim") for part in wrapped(words or "no snapshot yet", width - 2)]
    waiting = [row for row in (board.runs.rows if board.runs else ()) if row.state in ("submitted", "waiting")]
    if waiting:
        lines += [line(""), line(fit("  your waiting runs, according to their journals:", width), "head")]
        lines += [line(fit(f"  {fit(row.name, 24)} {span(row.waited):>6}  {row.why}", width)) for row in waiting]
    return boxed(lines, width, height)


def _columns(width: int) -> str:
    """Where there is little room, why it waits is worth more than whose it is and where."""
    user, queue = (f"{'user':10} ", f"{'queue':10} ") if width >= 100 else ("", "")
    return f"  {'job':9} {'name':20} {user}{'state':8} {queue}{'start':>11}  why"


def _job(job: ClusterJob, width: int, *, here: bool, now: float) -> Line:
    mine = "*" if job.mine else " "
    user, queue = (f"{fit(job.user, 10)} ", f"{fit(job.queue, 10)} ") if width >= 100 else ("", "")
    text = f"{fit(str(job.id), 9)} {fit(job.name, 20)} {user}{fit(str(job.state), 8)} {queue}{_start(job, now):>11}  "
    words = fit(f"{mine} {text}{job.reason or ', '.join(job.nodes)}", width)
    return line(words, "cursor" if here else "state.running" if job.nodes else "")


def _start(job: ClusterJob, now: float) -> str:
    if job.started:
        return f"{span(now - job.started)} ago"
    return f"~{clock(job.expected_start, now)}" if job.expected_start else "unknown"


def _about_job(job: ClusterJob | None, width: int, now: float) -> Block:
    if job is None:
        return boxed([], width, _ABOUT)
    asked = job.asked
    parts = [many(asked.nodes, "node"), many(asked.cpus, "CPU"), size(asked.mem) if asked.mem else ""]
    parts += [_gpus(asked.gpus), f"for {span(asked.time)}" if asked.time else ""]
    when = f"expected to start {clock(job.expected_start, now)}" if job.expected_start and not job.started else ""
    ends = f"ends by {clock(job.ends, now)}" if job.ends else ""
    lines = [titled(f"{job.id} {job.name}", width)]
    lines.append(
        line(
            fit(f" {job.user}{f' in {job.queue}' if job.queue else ''}: {', '.join(part for part in parts if part)}. {when or ends}", width)
        )
    )
    reason = f"{job.reason}" + (f" ({job.native})" if job.native and job.native not in job.reason else "")
    if job.priority is not None:
        reason += f"; priority {job.priority:g}" + (f": {job.factors}" if job.factors else "")
    lines += [line(fit(f" {part}", width), "focus") for part in wrapped(reason, width - 1, most=2)]
    return boxed(lines, width, _ABOUT)


def _gpus(gpus: tuple[Gpus, ...]) -> str:
    return ", ".join(f"{one.total} {one.type or 'GPU'}{'s' if one.total != 1 and not one.type else ''}" for one in gpus if one.total)


def _node(node: Node, width: int, *, here: bool) -> list[tuple[str, str]]:
    """Without colour, the mark says in which state it is."""
    share = node.cpus_used / node.cpus if node.cpus else None
    total, used = sum(gpu.total for gpu in node.gpus), sum(gpu.used for gpu in node.gpus)
    gpus = f"{used}/{total}g" if total else ""
    name = fit(node.name, max(width - 17, 4))
    state = str(node.state)
    style = "cursor" if here else f"node.{state}"
    return [(f"{_STATES.get(state, '?')} {name} {bar(share, 6)} {gpus:<6}", style), (" ", "")]


def _about_node(node: Node | None, snapshot: ClusterSnapshot, width: int, now: float) -> Block:
    if node is None:
        return boxed([], width, _ABOUT)
    gpus = ", ".join(f"{gpu.used} of {gpu.total} {gpu.type or 'GPUs'}" for gpu in node.gpus)
    mem = f", {size(node.mem_used)} of {size(node.mem)}" if node.mem else ""
    lines = [titled(f"{node.name} · {node.state}", width)]
    lines.append(line(fit(f" in use: {node.cpus_used} of {node.cpus} CPUs{mem}{', ' + gpus if gpus else ''}", width)))
    jobs = [f"{job.id} {job.user}" for job in snapshot.jobs if node.name in job.nodes]
    words = node.why or (f"jobs: {', '.join(jobs)}" if jobs else "no jobs run here")
    lines += [line(fit(f" {part}", width), "bad" if node.why else "") for part in wrapped(words, width - 1, most=2)]
    return boxed(lines, width, _ABOUT)
