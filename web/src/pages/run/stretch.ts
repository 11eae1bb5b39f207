/** A timeline laid out: stretches and moments placed along a width, moments that would touch drawn as one. Pure. */
import type { Got } from "../../api";
import { duration, whole } from "../../format";
import type { LogPlace } from "./address";

export type Told = Got<"/api/v1/runs/{run_id}/timeline">;
type Segment = Told["segments"][number];
type Mark = Told["marks"][number];

/** `lane` 0: waits and legs; 1: what happens inside a leg; 2: moments. */
export type Item = {
  key: string;
  kind: Segment["kind"] | Mark["kind"];
  lane: 0 | 1 | 2;
  left: number;
  width: number;
  leg: number;
  state: string;
  words: string;
  start: number;
  end: number | null;
  log: LogPlace | null;
  /** How many moments it stands for. */
  count: number;
};

const NEAR = 9; // px
const THIN = 3; // px: nothing is narrower
/** Drawn on the leg itself, which tells the same. */
const TOLD_BY_LEG: ReadonlySet<string> = new Set(["end"]);

export function layout(told: Told, width: number, now: number): Item[] {
  const end = Math.max(told.end, ...told.segments.filter((one) => one.end === null).map(() => now), told.start + 1);
  const scale = width / (end - told.start);
  const at = (time: number) => (time - told.start) * scale;
  const stretches = told.segments.map<Item>((one) => {
    const until = one.end ?? end;
    return {
      key: `${one.kind}-${one.leg}-${one.start}`,
      kind: one.kind,
      lane: one.kind === "leg" || one.kind === "queue" ? 0 : 1,
      left: at(one.start),
      width: Math.max(one.kind === "leg" || one.kind === "queue" ? THIN : 1, at(until) - at(one.start)),
      leg: one.leg,
      state: one.state,
      words: `${one.words} (${duration(until - one.start)}${one.end === null ? " so far" : ""})`,
      start: one.start,
      end: one.end,
      log: one.log,
      count: 1,
    };
  });
  return [...stretches, ...moments(told.marks, at)].sort((a, b) => a.start - b.start || a.lane - b.lane);
}

function moments(marks: readonly Mark[], at: (time: number) => number): Item[] {
  const made: Item[] = [];
  const last = new Map<string, { item: Item; first: Mark }>();
  for (const mark of marks) {
    if (TOLD_BY_LEG.has(mark.kind)) continue;
    const left = at(mark.at);
    const before = last.get(mark.kind);
    if (before && left - before.item.left < NEAR) {
      const { item, first } = before;
      item.count += 1;
      item.end = mark.at;
      item.words = together(first, mark, item.count);
      continue;
    }
    const item: Item = {
      ...{ key: `${mark.kind}-${mark.leg}-${mark.at}-${mark.step}`, kind: mark.kind, lane: 2, left, width: 0 },
      ...{ leg: mark.leg, state: "", words: mark.words, start: mark.at, end: mark.at, log: mark.log, count: 1 },
    };
    made.push(item);
    last.set(mark.kind, { item, first: mark });
  }
  return made;
}

function together(first: Mark, last: Mark, count: number): string {
  if (first.step !== null && last.step !== null && first.kind === "checkpoint")
    return `${count} checkpoints, steps ${whole(first.step)} to ${whole(last.step)}`;
  return `${count} events, from “${first.words}” to “${last.words}”`;
}

/** Ticks at round times, as many as there is room for. */
export function ticks(start: number, end: number, width: number): { left: number; seconds: number }[] {
  const length = Math.max(end - start, 1);
  const apart = length / Math.max(2, Math.floor(width / 90));
  const step = STEPS.find((one) => one >= apart) ?? Math.ceil(apart / 86400) * 86400;
  const found = [];
  for (let seconds = 0; seconds <= length; seconds += step) found.push({ left: (seconds / length) * width, seconds });
  return found;
}
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800];
