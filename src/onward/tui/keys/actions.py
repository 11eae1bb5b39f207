"""What each key does: it changes the view, or asks the source for something. The program draws what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onward.tui.keys.movement import CursorKeys
from onward.tui.pages.alerts import entries, run_of
from onward.tui.pages.cluster import shown_jobs
from onward.tui.state import ALERTS, AXES, GROUPS, QUEUE, RUN, RUNS, SMOOTH, moved, next_metric, toggled
from onward.tui.state import metric_of as metric_shown

if TYPE_CHECKING:
    from onward.tui.app import Question


class KeyActions(CursorKeys):
    """The keys of `keys.KEYS`, one after the other."""

    # ── where ─────────────────────────────────────────────────────────────────

    def action_screen(self, number: int) -> None:
        self.view.open(number)
        self._changed()

    def action_help(self) -> None:
        self.view.help, self.view.scroll = not self.view.help, 0
        self._changed(news=False)

    def action_open(self) -> None:
        view = self.view
        if view.screen == RUN and view.pane == "charts":
            view.zoom = not view.zoom
        elif view.screen == QUEUE:
            self._open_job()
        elif view.screen == ALERTS:
            found = entries(self.board, self._now())
            run = run_of(found[min(view.at.get(ALERTS, 0), len(found) - 1)]) if found else None
            if run:
                view.choose(run)
                view.open(RUN)
        elif view.screen == RUNS and view.chosen:
            view.open(RUN)
        self._changed()

    def _open_job(self) -> None:
        """The run of a job of one's own, by the name that its legs' jobs carry."""
        jobs = shown_jobs(self.view, self.board)
        job = jobs[min(self.view.at.get(QUEUE, 0), len(jobs) - 1)] if jobs else None
        rows = [
            row for row in (self.board.runs.rows if self.board.runs else ()) if job and job.mine and job.name.startswith(f"{row.name}.")
        ]
        if rows:
            self.view.choose(rows[0].id)
            self.view.open(RUN)

    def action_leave(self) -> None:
        view = self.view
        if self.hush():
            return
        if view.help:
            view.help = False
        elif view.zoom:
            view.zoom = False
        elif view.in_log and view.find:
            view.find = ""
        elif view.screen == RUN:
            view.open(RUNS)
        elif view.filter:
            view.filter = ""
        elif view.screen != RUNS:
            view.open(RUNS)
        else:
            view.selected.clear()
            view.compare = False
            view.focus("list")
        self._changed()

    def action_pane(self, by: int) -> None:
        self.view.next_pane(by)
        self._changed()

    def action_refresh(self) -> None:
        self.board.message = "refreshing"
        self.draw()
        self.board.message = ""
        self.news()

    # ── the list ──────────────────────────────────────────────────────────────

    def action_select(self) -> None:
        if self.view.screen == RUNS and self.view.chosen:
            toggled(self.view.selected, self.view.chosen)
            moved(self.view, self.board, 1)
        self._changed()

    def action_compare(self) -> None:
        view = self.view
        if not view.selected and not view.compare:
            self.say("nothing is selected: Space selects the run under the cursor")
            return
        view.compare = not view.compare
        self._changed()

    def action_group(self) -> None:
        self.view.group = (self.view.group + 1) % len(GROUPS)
        self._changed(news=False)
        self.say(f"grouped by {GROUPS[self.view.group]}" if self.view.group else "not grouped")

    def action_pin(self) -> None:
        view = self.view
        if view.screen == RUN and view.pane == "charts":
            key = metric_shown(view, self.board.metrics)
            if key:
                self.say(f"{key} is {'pinned' if toggled(view.pinned_metrics, key) else 'no longer pinned'}")
        elif view.chosen:
            self.say("pinned: it stays first and in the chart" if toggled(view.pinned, view.chosen) else "no longer pinned")

    # ── charts ────────────────────────────────────────────────────────────────

    def action_metric(self, by: int) -> None:
        next_metric(self.view, self.board, by)
        self._changed()

    def action_log_axis(self) -> None:
        self.view.log_axis = not self.view.log_axis
        self._changed(news=False)

    def action_axis(self) -> None:
        self.view.axis = (self.view.axis + 1) % len(AXES)
        self._changed(news=False)

    def action_smooth(self) -> None:
        self.view.smooth = (self.view.smooth + 1) % len(SMOOTH)
        self._changed(news=False)

    # ── logs ──────────────────────────────────────────────────────────────────

    def action_logs(self) -> None:
        if self.view.screen not in (RUNS, RUN):
            self.view.open(RUN)
        self.view.focus("log" if self.view.screen == RUNS else "logs")
        self._changed()

    def action_stream(self) -> None:
        self.view.next_stream()
        self._changed()

    def action_follow(self) -> None:
        view, log = self.view, self.board.log
        if view.top is not None:
            view.top = None
        elif log and log.lines:
            view.top = log.lines[max(len(log.lines) - self._log_page(), 0)].offset
        self._changed()

    def action_match(self, by: int) -> None:
        view, log = self.view, self.board.log
        if not view.find or log is None or view.chosen is None:
            self.say("nothing to search for: press / in a log")
            return
        self._search(by)

    def _search(self, by: int) -> None:
        view, log, run = self.view, self.board.log, self.view.chosen
        assert log is not None and run is not None
        here = next((n for n, one in enumerate(log.lines) if view.top is not None and one.offset >= view.top), None)
        if by > 0:
            after = 0 if here is None else log.lines[here].offset + len(log.lines[here].text.encode()) + 1
        else:
            after = log.size if here is None else log.lines[here].offset

        def work() -> str:
            at = self.source.search(run, log, view.find, after=after, back=by < 0)
            if at is None:
                return f"no {'further' if here is not None else ''} line with {view.find!r}".replace("  ", " ")
            view.top = at
            return f"{view.find!r} at {100 * at // max(log.size, 1)}% of the log; n next, N before"

        self.do(work)

    # ── the line at the bottom ────────────────────────────────────────────────

    def action_ask(self) -> None:
        if self.view.in_log:
            self.ask("search", "search this log", self.view.find)
        else:
            self.ask("filter", "filter: words, or state = failed and metrics.loss < 0.5 (server)", self.view.filter)

    def action_stop(self) -> None:
        row = self.board.row(self.view.chosen)
        if row is None:
            self.say("no run is selected")
        elif row.state in ("finished", "failed", "cancelled"):
            self.say(f"{row.name} is {row.state}: nothing to stop")
        else:
            self.ask("stop", f"{row.name[:40]} will save a checkpoint and end. Type stop and press Enter; Esc leaves it running")

    def answered(self, question: Question, value: str, run: str | None) -> None:
        view = self.view
        if question == "filter":
            view.filter = value
            self._changed()
        elif question == "search":
            view.find = value
            if value and self.board.log is not None and view.chosen is not None:
                view.top = None
                self._search(1)
            self._changed()
        elif value == "stop" and run is not None:
            self.say("asking it to stop …")
            self.do(lambda: self.source.stop(run))
        else:
            self.say("not stopped: you did not type stop")

    def action_link(self) -> None:
        run = self.view.chosen
        link = self.source.link(run) if run else None
        if link is None:
            self.say("the page needs a server: onward up starts one")
            return
        self.links.append(link)
        self.say(f"{link} (printed again at the end)")

    def action_quit(self) -> Any:
        self.exit(self.links)  # type: ignore[attr-defined]
