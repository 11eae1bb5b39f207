/** Lines placed along an axis and smoothed: what a plot draws. Pure. */
import { type Axis, placesOf, rising, type Window } from "./axis";
import { firstFrom, type Line } from "./line";
import type { Curve } from "./read";
import { smoothed, unitOf } from "./smooth";

export type Drawn = Curve & {
  /** How many points there really are behind it. */
  points: number;
  superseded: number;
  exact: boolean;
  /** The number of the first leg in it. */
  first: number;
  /** Number and place of each leg after the first. */
  legs: readonly (readonly [number, number])[];
  /** Whether the space between lows and highs is filled. */
  band: boolean;
};

export type Given = {
  line: Line;
  /** The axis' metric of the same run. */
  other: Line | null;
  /** The whole line, of which `line` may be a part: what the smoothing is measured by. */
  whole: Line;
};

/** `log`: smoothed as it is drawn, along powers of ten. */
export function drawn(given: Given, axis: Axis, weight: number, log = false): Drawn {
  const { line, other, whole } = given;
  const places = placesOf(line, axis, other);
  const order = orderOf(places);
  const take = (row: Float64Array) => (order === null ? row : Float64Array.from(order, (at) => row[at] as number));
  const xs = take(places);
  const mids = take(line.mids);
  const extent = extentOf(axis === "step" || axis === "wall" || axis === "relative" ? placesOf(whole, axis, null) : xs);
  return {
    id: line.run,
    xs,
    mids,
    lows: line.lows === line.mids ? mids : take(line.lows),
    highs: line.highs === line.mids ? mids : take(line.highs),
    smooth: log
      ? smoothed(xs.map(Math.log), mids, weight, unitOf(...logExtent(xs), whole.points))
      : smoothed(xs, mids, weight, unitOf(extent[0], extent[1], whole.points)),
    points: line.points,
    superseded: line.superseded,
    exact: line.exact,
    first: firstLeg(line),
    legs: line.legs.slice(1).flatMap(([leg, step]) => {
      const place = placeAt(line, places, step);
      return Number.isFinite(place) ? [[leg, place] as const] : [];
    }),
    band: !line.exact,
  };
}

/** The order by x, without what has no place; null where it is in order as it stands. */
function orderOf(xs: Float64Array): number[] | null {
  if (rising(xs)) return null;
  const order: number[] = [];
  for (let at = 0; at < xs.length; at++) if (Number.isFinite(xs[at] as number)) order.push(at);
  return order.sort((one, two) => (xs[one] as number) - (xs[two] as number) || one - two);
}

function extentOf(xs: Float64Array): Window {
  return xs.length ? [xs[0] as number, xs[xs.length - 1] as number] : [0, 0];
}

/** The leg that what is drawn begins in. */
function firstLeg(line: Line): number {
  const from = line.steps[0] ?? 0;
  return line.legs.findLast(([, step]) => step <= from)?.[0] ?? line.legs[0]?.[0] ?? 1;
}

function logExtent(xs: Float64Array): Window {
  const first = xs.find((x) => x > 0) ?? 1;
  return [Math.log(first), Math.log(Math.max(first, xs[xs.length - 1] ?? first))];
}

/** A curve as one for each leg, named `leg 1`, `leg 2` …; a leg goes on from where the one before ended. */
export function byLegs(curve: Drawn): Drawn[] {
  const starts = [0, ...curve.legs.map(([, x]) => firstFrom(curve.xs, x))];
  const numbers = [curve.first, ...curve.legs.map(([leg]) => leg)];
  return starts.map((start, at) => {
    const end = starts[at + 1] ?? curve.xs.length;
    const part = (row: Float64Array) => row.subarray(start, Math.min(curve.xs.length, end + 1));
    const share = (end - start) / (curve.xs.length || 1);
    return {
      ...curve,
      ...{
        id: `leg ${numbers[at]}`,
        xs: part(curve.xs),
        lows: part(curve.lows),
        mids: part(curve.mids),
        highs: part(curve.highs),
      },
      smooth: part(curve.smooth),
      points: Math.round(curve.points * share),
      superseded: at ? 0 : curve.superseded,
    };
  });
}

/** Where a step lies; NaN outside of what is drawn. */
function placeAt(line: Line, places: Float64Array, step: number): number {
  const at = firstFrom(line.steps, step);
  if (at >= line.steps.length || (at === 0 && (line.steps[0] as number) > step)) return Number.NaN;
  return places[at] as number;
}

/** As the server tells a group of runs. */
export type GroupTold = {
  name: string;
  xs: readonly number[];
  means: readonly (number | null)[];
  deviations: readonly (number | null)[];
  lows: readonly (number | null)[];
  highs: readonly (number | null)[];
  counts: readonly number[];
  with_data: number;
};
export type Band = "deviation" | "range" | "error";
export const BANDS: readonly { id: Band; name: string }[] = [
  { id: "deviation", name: "± deviation" },
  { id: "error", name: "± standard error" },
  { id: "range", name: "Lowest to highest" },
];

/** The mean of a group with its band; the mean alone is smoothed. */
export function drawnGroup(told: GroupTold, band: Band, weight: number): Drawn {
  const row = (cells: readonly (number | null)[]) => Float64Array.from(cells, (cell) => cell ?? Number.NaN);
  const xs = Float64Array.from(told.xs);
  const mids = row(told.means);
  const spread = row(told.deviations);
  const half = (at: number) => (spread[at] as number) / (band === "error" ? Math.sqrt(told.counts[at] || 1) : 1);
  const [from, to] = extentOf(xs);
  return {
    id: told.name,
    xs,
    mids,
    lows: band === "range" ? row(told.lows) : mids.map((mean, at) => mean - half(at)),
    highs: band === "range" ? row(told.highs) : mids.map((mean, at) => mean + half(at)),
    smooth: smoothed(xs, mids, weight, unitOf(from, to, xs.length)),
    points: xs.length,
    superseded: 0,
    exact: false,
    first: 1,
    legs: [],
    band: true,
  };
}
