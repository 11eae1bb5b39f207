/** The curves of one metric: of single runs, or of groups of runs. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { inWords, post } from "../api";
import { whole } from "../format";
import { type LiveEvent, useLive } from "../live";
import type { Window } from "./axis";
import { axisMetric } from "./axis";
import { type Drawn, drawn, drawnGroup, type GroupTold } from "./curve";
import { type Why, whyEmpty } from "./empty";
import { Feed } from "./feed";
import type { Line } from "./line";
import type { Sync } from "./sync";
import type { View } from "./view";

export type Curves = {
  curves: readonly Drawn[];
  loading: boolean;
  problem: { what: string; next: string } | null;
  /** What is not finite in what is drawn. */
  bads: number;
  /** The curves to count the points of, where those drawn are parts that share some. */
  counted?: readonly Drawn[];
  /** What stands in the place of a count of points. */
  words?: string;
  empty: (window: Window | null) => Why;
};

export function runsOf(events: readonly LiveEvent[]): string[] | "all" {
  if (events.some(({ event }) => event === "reset")) return "all";
  const told = events.filter(({ event }) => event === "points_added" || event === "run_changed");
  return [...new Set(told.flatMap(({ run_id }) => (run_id ? [run_id] : [])))];
}

/** Lines of runs, whole and near, live. */
export function useLines(metric: string, runs: readonly string[], view: View, sync: Sync, buckets: number): Curves {
  const [turn, next] = useState(0);
  const feed = useMemo(() => new Feed(metric, buckets, () => next((count) => count + 1)), [metric, buckets]);
  useEffect(() => () => feed.close(), [feed]);
  // before anything is painted: the question is on its way while the machine draws
  useLayoutEffect(() => feed.show(runs, view.axis), [feed, runs, view.axis]);
  useEffect(() => feed.zoom(view.window), [feed, view.window]);
  useEffect(() => sync.moving.subscribe((window) => window && feed.zoom(window)), [feed, sync]);
  useLive((events) => {
    const told = runsOf(events);
    if (told === "all") feed.show(runs, view.axis); // what could not be read before
    feed.live(told === "all" ? runs : told);
  });
  const given = useMemo(() => feed.given(), [feed, turn, runs, view.axis, view.window]);
  const kept = useRef(new Map<string, { line: Line; other: Line | null; name: string; curve: Drawn }>());
  const curves = useMemo(() => {
    const before = kept.current;
    kept.current = new Map();
    return given.map((one) => {
      const name = `${view.axis} ${view.smooth} ${view.logX} ${one.whole.points}`;
      const old = before.get(one.line.run);
      const same = old && old.line === one.line && old.other === one.other && old.name === name;
      const curve = same ? old.curve : drawn(one, view.axis, view.smooth, view.logX);
      kept.current.set(one.line.run, { line: one.line, other: one.other, name, curve });
      return curve;
    });
  }, [given, view.axis, view.smooth, view.logX]);
  return {
    curves,
    loading: feed.loading,
    problem: feed.problem,
    bads: given.reduce((sum, { line }) => sum + line.bads, 0),
    empty: (window) =>
      whyEmpty({
        metric,
        axis: view.axis,
        lines: given.map(({ whole }) => whole),
        others: given.flatMap(({ other }) => (other ? [other] : [])),
        runs: runs.length,
        window,
        logX: view.logX,
        logY: view.logY,
      }),
  };
}

export type Group = { name: string; runs: readonly string[] };
const AGAIN = 10_000; // ms between two readings of a live group

/** The mean of each group, over all its runs. */
export function useGroups(metric: string, groups: readonly Group[], view: View, cells: number): Curves {
  const [told, setTold] = useState<readonly GroupTold[]>([]);
  const [loading, setLoading] = useState(true);
  const [problem, setProblem] = useState<Curves["problem"]>(null);
  const [again, setAgain] = useState(0);
  const last = useRef(0);
  useEffect(() => {
    const gone = new AbortController();
    const [first, to] = view.window ?? [null, null];
    setLoading(true);
    last.current = Date.now();
    post("/api/v1/series/aggregates/search", {
      body: { groups, metric, x: view.axis, cells, first, last: to },
      signal: gone.signal,
    })
      .then((answer) => {
        setTold((answer as { groups: GroupTold[] }).groups);
        setProblem(null);
        setLoading(false);
      })
      .catch((error: unknown) => {
        const words = inWords(error);
        if (!words) return;
        setProblem(words);
        setLoading(false);
      });
    return () => gone.abort();
  }, [metric, groups, view.axis, view.window, cells, again]);
  useLive((events) => {
    const runs = runsOf(events);
    const ours = runs === "all" || groups.some((group) => group.runs.some((run) => runs.includes(run)));
    if (ours && Date.now() - last.current > AGAIN) setAgain((count) => count + 1);
  });
  const curves = useMemo(
    () => told.map((group) => drawnGroup(group, view.band, view.smooth)),
    [told, view.band, view.smooth],
  );
  const runs = groups.reduce((sum, group) => sum + group.runs.length, 0);
  const empty = (window: Window | null): Why => {
    if (window) return { why: "There are no points in this zoom range.", ways: ["reset zoom"] };
    const other = axisMetric(view.axis);
    const why = other
      ? `No run has both ${metric} and ${other}.`
      : `None of these ${runs} runs have logged ${metric} yet.`;
    return { why, ways: other ? ["step"] : [] };
  };
  const having = told.reduce((sum, group) => sum + group.with_data, 0);
  return { curves, loading, problem, bads: 0, empty, words: `${whole(having)} runs` };
}
