/** Asking for series: what charts of one page ask for at the same moment goes into one call. */
import { post } from "../api";
import type { Span } from "./axis";
import { type Line, lineOf, type Told } from "./line";

export type Ask = { runs: readonly string[]; metric: string; buckets: number; spans?: Readonly<Record<string, Span>> };
type Waiting = Ask & { done: (lines: Line[]) => void; failed: (error: unknown) => void };

const MOST = 120_000; // buckets in one answer
let waiting: Waiting[] = [];
let gathering = false;

/** The lines of these runs that there are. */
export function load(ask: Ask): Promise<Line[]> {
  if (!ask.runs.length) return Promise.resolve([]);
  return new Promise((done, failed) => {
    waiting.push({ ...ask, done, failed });
    if (!gathering) queueMicrotask(flush);
    gathering = true;
  });
}

function flush(): void {
  gathering = false;
  const all = waiting;
  waiting = [];
  for (const batch of batches(all)) void send(batch);
}

/** Asks that differ in the metric alone, as many as fit into one answer. */
export function batches<A extends Ask>(asks: readonly A[]): A[][] {
  const alike = new Map<string, A[][]>();
  for (const ask of asks) {
    const name = JSON.stringify([ask.runs, ask.buckets, ask.spans ?? null]);
    const found = alike.get(name) ?? [];
    if (!found.length) alike.set(name, found);
    const last = found.at(-1);
    const metrics = new Set(last?.map(({ metric }) => metric));
    if (last && (metrics.has(ask.metric) || (metrics.size + 1) * ask.runs.length * ask.buckets <= MOST)) last.push(ask);
    else found.push([ask]);
  }
  return [...alike.values()].flat();
}

async function send(batch: readonly Waiting[]): Promise<void> {
  const [first] = batch;
  if (!first) return;
  try {
    const body = {
      runs: first.runs,
      metrics: [...new Set(batch.map(({ metric }) => metric))],
      buckets: first.buckets,
      spans: first.spans ?? {},
      means: true,
      times: true,
    };
    const { series } = (await post("/api/v1/series/search", { body })) as { series: Told[] };
    const lines = series.map(lineOf);
    for (const { metric, done } of batch) done(lines.filter((line) => line.metric === metric));
  } catch (error) {
    for (const { failed } of batch) failed(error);
  }
}
