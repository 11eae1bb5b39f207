/** What lies along a chart: step, time since the start, time of day, or another metric. Pure. */
import { firstFrom, type Line } from "./line";

export type Axis = "step" | "relative" | "wall" | `metric:${string}`;
export type Span = readonly [number | null, number | null];
export type Window = readonly [number, number];

export const AXES: readonly { id: Axis; name: string }[] = [
  { id: "step", name: "Step" },
  { id: "relative", name: "Relative time" },
  { id: "wall", name: "Wall time" },
];

export function isAxis(given: string): given is Axis {
  return (
    given === "step" || given === "relative" || given === "wall" || (given.startsWith("metric:") && given.length > 7)
  );
}

export function axisMetric(axis: Axis): string | null {
  return axis.startsWith("metric:") ? axis.slice(7) : null;
}

export function axisName(axis: Axis): string {
  return AXES.find(({ id }) => id === axis)?.name ?? axisMetric(axis) ?? axis;
}

/** Where each bucket of a line lies; NaN where the other metric does not reach. `other`: the line of the axis' metric. */
export function placesOf(line: Line, axis: Axis, other: Line | null): Float64Array {
  if (axis === "step") return line.steps;
  if (axis === "wall") return line.times;
  if (axis === "relative") {
    const start = line.began ?? line.times[0] ?? 0;
    return line.times.map((time) => time - start);
  }
  return other === null
    ? new Float64Array(line.steps.length).fill(Number.NaN)
    : line.steps.map((step) => valueAt(other, step));
}

/** A line's value at a step, between its points too; NaN before its first, after its last and in gaps. */
export function valueAt(line: Line, step: number): number {
  const at = firstFrom(line.steps, step);
  if (line.steps[at] === step) return line.mids[at] as number;
  if (at === 0 || at === line.steps.length) return Number.NaN;
  const before = line.steps[at - 1] as number;
  const share = (step - before) / ((line.steps[at] as number) - before);
  return (line.mids[at - 1] as number) * (1 - share) + (line.mids[at] as number) * share;
}

/** Which steps of a line lie in a window of x, with a quarter of the window more on each side: a pan finds something there, and smoothing warms up. */
export function spanOf(line: Line, xs: Float64Array, window: Window): Span {
  const margin = (window[1] - window[0]) / 4;
  let first = -1;
  let last = -1;
  for (let at = 0; at < xs.length; at++) {
    const x = xs[at] as number;
    if (x >= window[0] - margin && x <= window[1] + margin) {
      if (first < 0) first = at;
      last = at;
    }
  }
  if (first < 0) {
    const after = firstFrom(xs, window[0]);
    if (after === 0 || after === xs.length) return [1, 0];
    first = after;
    last = after - 1;
  }
  return [first > 0 ? (line.steps[first - 1] as number) : null, line.steps[last + 1] ?? null];
}

/** Lines whose x turns back (a metric as axis, clocks that disagree) are drawn in the order of x. */
export function rising(xs: Float64Array): boolean {
  for (let at = 1; at < xs.length; at++) if (!((xs[at] as number) >= (xs[at - 1] as number))) return false;
  return true;
}
