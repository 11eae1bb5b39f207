/** The lines behind one chart: the whole of each run, the part that is zoomed into at full resolution, and what comes in live. */
import { inWords } from "../api";
import { type Axis, axisMetric, placesOf, type Span, spanOf, type Window } from "./axis";
import type { Given } from "./curve";
import { extended, type Line, nextStep } from "./line";
import { load } from "./load";

const KEPT = 600; // lines kept for charts that come back into view
const FRESH = 5000; // ms
const ROUNDS = 4;
const SETTLE = 140; // ms after the last move of a zoom before the server is asked again

type Whole = { line: Line | null; at: number; buckets: number };
const wholes = new Map<string, Whole>();
const nameOf = (run: string, metric: string) => `${run}\n${metric}`;

function keep(run: string, metric: string, whole: Whole): void {
  const name = nameOf(run, metric);
  wholes.delete(name);
  wholes.set(name, whole);
  if (wholes.size > KEPT) wholes.delete(wholes.keys().next().value as string);
}

export class Feed {
  runs: readonly string[] = [];
  loading = false;
  problem: { what: string; next: string } | null = null;
  private axis: Axis = "step";
  private window: Window | null = null;
  private near: { window: Window; lines: Map<string, Line>; others: Map<string, Line> } | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private turn = 0;
  private busy = false;
  private again = new Set<string>();
  private closed = false;

  constructor(
    readonly metric: string,
    private readonly buckets: number,
    private readonly changed: () => void,
  ) {}

  /** Which runs, and along what. Only what is missing is asked for. */
  show(runs: readonly string[], axis: Axis): void {
    const turned = axis !== this.axis;
    this.runs = runs;
    this.axis = axis;
    if (turned) this.near = null;
    void this.fill(this.keys());
    if (this.window) this.zoom(this.window);
  }

  private keys(): string[] {
    const other = axisMetric(this.axis);
    return other === null || other === this.metric ? [this.metric] : [this.metric, other];
  }

  private async fill(keys: readonly string[]): Promise<void> {
    const now = Date.now();
    const missing = keys.map((metric) => ({
      metric,
      runs: this.runs.filter((run) => (wholes.get(nameOf(run, metric))?.buckets ?? 0) < this.buckets),
    }));
    const stale = this.runs.filter((run) =>
      keys.some((key) => now - (wholes.get(nameOf(run, key))?.at ?? now) > FRESH),
    );
    if (stale.length) this.live(stale);
    if (missing.every(({ runs }) => !runs.length)) return this.changed();
    this.loading = true;
    this.changed();
    try {
      await Promise.all(missing.map((ask) => this.read(ask.runs, ask.metric)));
      this.problem = null;
    } catch (error) {
      this.problem = inWords(error);
    }
    this.loading = false;
    if (this.closed) return;
    this.changed();
    if (this.window) this.zoom(this.window); // what is near is known only now
  }

  /** Whole lines, kept for every chart of the page. */
  private async read(runs: readonly string[], metric: string): Promise<void> {
    const lines = await load({ runs, metric, buckets: this.buckets });
    const found = new Map(lines.map((line) => [line.run, line]));
    for (const run of runs) keep(run, metric, { line: found.get(run) ?? null, at: Date.now(), buckets: this.buckets });
  }

  whole(run: string, metric = this.metric): Line | null {
    return wholes.get(nameOf(run, metric))?.line ?? null;
  }

  /** What to draw: the near part where it holds what is looked at, else the whole. */
  given(): Given[] {
    const other = axisMetric(this.axis);
    const { near, window } = this;
    const close = near && window && holds(near.window, window) ? near : null;
    return this.runs.flatMap((run) => {
      const whole = this.whole(run);
      if (!whole) return [];
      const line = close?.lines.get(run) ?? whole;
      const along =
        other === null ? null : other === this.metric ? line : (close?.others.get(run) ?? this.whole(run, other));
      return [{ line, whole, other: along }];
    });
  }

  /** Look closer: soon after the last move the server is asked for the part at full resolution. */
  zoom(window: Window | null): void {
    this.window = window;
    clearTimeout(this.timer);
    if (window === null) {
      this.turn++; // what is still on its way is no longer wanted
      if (this.near) {
        this.near = null;
        this.changed();
      }
      return;
    }
    if (
      this.near &&
      sharp(this.near.window, window) &&
      this.runs.every((run) => this.near?.lines.has(run) || !this.whole(run))
    )
      return;
    this.timer = setTimeout(() => void this.closer(window), SETTLE);
  }

  /** By steps one question is enough. By time or another metric the steps are known as finely as the line is: each answer makes the next one sharper. */
  private async closer(window: Window): Promise<void> {
    const turn = ++this.turn;
    const lines = new Map<string, Line>();
    const others = new Map<string, Line>();
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const spans = this.spans(window, lines, others);
        const runs = Object.keys(spans);
        if (!runs.length) break;
        const ask = (metric: string) => load({ runs, metric, buckets: Math.round(this.buckets * 1.5), spans });
        const [found = [], along = []] = await Promise.all(this.keys().map(ask));
        if (turn !== this.turn || this.closed) return;
        for (const line of found) lines.set(line.run, line);
        for (const line of along) others.set(line.run, line);
        this.near = { window: wider(window), lines, others };
        this.changed();
        if (this.axis === "step") break;
      }
      this.problem = null;
    } catch (error) {
      if (turn !== this.turn) return;
      this.problem = inWords(error);
      this.changed();
    }
  }

  /** Which steps of which runs are to be read closer. */
  private spans(
    window: Window,
    lines: ReadonlyMap<string, Line>,
    others: ReadonlyMap<string, Line>,
  ): Record<string, Span> {
    const key = axisMetric(this.axis);
    const [from, to] = wider(window);
    const spans: Record<string, Span> = {};
    for (const run of this.runs) {
      const line = lines.get(run) ?? this.whole(run);
      const other = key === null ? null : key === this.metric ? line : (others.get(run) ?? this.whole(run, key));
      if (!line || (line.exact && other?.exact !== false)) continue;
      const places = placesOf(line, this.axis, other);
      const seen = places.reduce((sum, x) => sum + Number(x >= window[0] && x <= window[1]), 0);
      if (seen >= this.buckets / 2) continue;
      spans[run] = this.axis === "step" ? [Math.floor(from), Math.ceil(to)] : spanOf(line, places, window);
    }
    return spans;
  }

  /** Points came in for these runs: ask for what is after the last step seen. One question at a time. */
  live(runs: Iterable<string>): void {
    for (const run of runs) if (this.runs.includes(run)) this.again.add(run);
    if (this.busy || !this.again.size) return;
    this.busy = true;
    void this.follow().finally(() => {
      this.busy = false;
      if (this.again.size && !this.closed) setTimeout(() => this.live([]), 500);
    });
  }

  private async follow(): Promise<void> {
    const runs = [...this.again].filter((run) => wholes.has(nameOf(run, this.metric)));
    this.again.clear();
    try {
      await Promise.all(this.keys().map((metric) => this.grow(runs, metric)));
    } catch {
      return; // the marker in the bar tells; the next event asks again
    }
    if (!this.closed) this.changed();
  }

  private async grow(runs: readonly string[], metric: string): Promise<void> {
    const spans: Record<string, Span> = {};
    for (const run of runs) {
      const whole = this.whole(run, metric);
      if (whole?.steps.length) spans[run] = [nextStep(whole), null];
    }
    const anew = runs.filter((run) => !(run in spans));
    const known = Object.keys(spans);
    const tails = known.length ? await load({ runs: known, metric, buckets: this.buckets, spans }) : [];
    for (const tail of tails) {
      const whole = this.whole(tail.run, metric);
      if (!whole) continue;
      const line = extended(whole, tail, this.buckets * 2.5);
      if (line === null) anew.push(tail.run);
      else keep(tail.run, metric, { line, at: Date.now(), buckets: this.buckets });
      const near = metric === this.metric ? this.near?.lines : this.near?.others;
      const part = near?.get(tail.run);
      if (!near || !part || !line || line === whole || !this.near) continue;
      const longer = grown(part, line, tail);
      if (longer) near.set(tail.run, longer);
    }
    if (anew.length) await this.read(anew, metric);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }
}

/** The near part goes on with the tail where it reached the end of the whole. */
function grown(part: Line, whole: Line, tail: Line): Line | null {
  const end = part.steps.at(-1) ?? Number.NaN;
  const first = tail.steps[0];
  if (first === undefined || !(end < first) || whole.steps.indexOf(end) < 0) return null;
  return extended({ ...part, total: whole.total - tail.steps.length }, tail, Number.POSITIVE_INFINITY);
}

function wider(window: Window): Window {
  const margin = (window[1] - window[0]) / 4;
  return [window[0] - margin, window[1] + margin];
}

function holds(outer: Window, inner: Window): boolean {
  const slack = (inner[1] - inner[0]) * 0.001;
  return outer[0] <= inner[0] + slack && outer[1] >= inner[1] - slack;
}

/** Whether what was read is fine enough for a window: it holds it, and is not more than twice as wide as need be. */
function sharp(read: Window, window: Window): boolean {
  return holds(read, window) && read[1] - read[0] <= (window[1] - window[0]) * 1.5 * 2;
}
