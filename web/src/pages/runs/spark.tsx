/** Small curves of one metric, for the runs in view: asked for together, drawn as one path each. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../../api";
import { num, toNumber } from "../../format";

type Curve = { values: readonly (number | null)[]; low: number; high: number; last: number | null };
const curves = signal<ReadonlyMap<string, Curve>>(new Map());
const asked = new Set<string>();
let waiting: { metric: string; runs: Set<string> } | null = null;
const GATHER = 60; // ms
const MOST = 50; // runs a call
const KEPT = 2000;

const keyOf = (metric: string, run: string) => `${metric}\n${run}`;

function want(metric: string, run: string): void {
  const key = keyOf(metric, run);
  if (asked.has(key)) return;
  asked.add(key);
  if (waiting?.metric !== metric) waiting = { metric, runs: new Set() };
  waiting.runs.add(run);
  const batch = waiting;
  if (batch.runs.size === 1) setTimeout(() => void send(batch), GATHER);
}

async function send(batch: { metric: string; runs: Set<string> }): Promise<void> {
  if (waiting === batch) waiting = null;
  const runs = [...batch.runs];
  for (let at = 0; at < runs.length; at += MOST) {
    const some = runs.slice(at, at + MOST);
    try {
      const got = await get("/api/v1/sparklines", {
        query: { runs: some.join(","), metric: batch.metric },
      });
      const known = new Map(curves.peek().size > KEPT ? [] : curves.peek());
      for (const run of some) known.set(keyOf(batch.metric, run), curveOf(got.sparklines[run]?.values ?? []));
      curves.value = known;
    } catch {
      for (const run of some) asked.delete(keyOf(batch.metric, run)); // a list without its small curves is still a list
    }
  }
}

/** Runs that went on: their curves are read anew when they are next looked at. */
export function forget(runs: ReadonlySet<string>): void {
  for (const key of [...asked]) if (runs.has(key.slice(key.indexOf("\n") + 1))) asked.delete(key);
}

export function curveOf(given: readonly (number | string | null)[]): Curve {
  const values = given.map((value) => {
    const number = toNumber(value);
    return number !== null && Number.isFinite(number) ? number : null;
  });
  const known = values.filter((value): value is number => value !== null);
  const ends = given.length ? toNumber(given[given.length - 1]) : null;
  return { values, low: Math.min(...known), high: Math.max(...known), last: ends };
}

/** An SVG path; a gap where a value is missing, a flat line in the middle where all are the same. */
export function pathOf({ values, low, high }: Curve, width: number, height: number): string {
  const across = Math.max(1, values.length - 1);
  let path = "";
  let gap = true;
  for (const [at, value] of values.entries()) {
    if (value === null) {
      gap = true;
      continue;
    }
    const y = high > low ? height - 1 - ((value - low) / (high - low)) * (height - 2) : height / 2;
    path += `${gap ? "M" : "L"}${((at / across) * width).toFixed(1)} ${y.toFixed(1)}`;
    gap = false;
  }
  return path;
}

export function Spark({ run, metric, tick }: { run: string; metric: string; tick: number }) {
  // `tick` says that the run went on
  useEffect(() => {
    if (metric) want(metric, run);
  }, [run, metric, tick]);
  const curve = curves.value.get(keyOf(metric, run));
  if (!curve?.values.some((value) => value !== null)) return <span class="spark none" />;
  const words = `${metric}: ${num(curve.last)}, from ${num(curve.low)} to ${num(curve.high)}`;
  return (
    <span class="spark" title={words}>
      <svg viewBox="0 0 64 20" preserveAspectRatio="none" aria-hidden="true">
        <path d={pathOf(curve, 64, 20)} />
      </svg>
      <span class="number">{num(curve.last, 3)}</span>
    </span>
  );
}
