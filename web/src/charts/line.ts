/** One series of one run as it is drawn: columns side by side by step, a bucket keeps its lowest and highest. Pure. */

/** As the server tells it. */
export type Told = {
  run: string;
  metric: string;
  points: number;
  superseded: number;
  total: number;
  began: number | null;
  legs: readonly (readonly [number, number])[];
  exact: boolean;
  steps: readonly number[];
  values?: readonly Cell[] | null;
  lows?: readonly Cell[] | null;
  highs?: readonly Cell[] | null;
  means?: readonly Cell[] | null;
  times?: readonly number[] | null;
  bads?: readonly number[] | null;
};
type Cell = number | string | null;

export type Line = {
  run: string;
  metric: string;
  /** How many points there really are in the range that was asked for. */
  points: number;
  superseded: number;
  /** Of the whole series, the superseded ones too. */
  total: number;
  began: number | null;
  /** Number and first step of each leg that shows. */
  legs: readonly (readonly [number, number])[];
  exact: boolean;
  steps: Float64Array;
  times: Float64Array;
  /** NaN where a bucket has no finite value: the line has a gap there. */
  lows: Float64Array;
  mids: Float64Array;
  highs: Float64Array;
  /** NaN and infinities in all. */
  bads: number;
};

/** JSON has no word for NaN and infinities: null, or a text. None of them can be drawn. */
function column(given: readonly Cell[] | null | undefined, length: number): Float64Array {
  const made = new Float64Array(length).fill(Number.NaN);
  given?.forEach((cell, at) => {
    if (typeof cell === "number" && Number.isFinite(cell)) made[at] = cell;
  });
  return made;
}

export function lineOf(told: Told): Line {
  const size = told.steps.length;
  const mids = column(told.exact ? told.values : (told.means ?? told.lows), size);
  return {
    run: told.run,
    metric: told.metric,
    points: told.points,
    superseded: told.superseded,
    total: told.total,
    began: told.began,
    legs: told.legs,
    exact: told.exact,
    steps: Float64Array.from(told.steps),
    times: Float64Array.from(told.times ?? []),
    lows: told.exact ? mids : column(told.lows, size),
    mids,
    highs: told.exact ? mids : column(told.highs, size),
    bads: (told.bads ?? []).reduce((sum, bad) => sum + bad, 0),
  };
}

/** Where the next live question begins: one after the last step seen. */
export function nextStep(line: Line): number {
  return line.steps.length ? (line.steps[line.steps.length - 1] as number) + 1 : Number.MIN_SAFE_INTEGER;
}

/** A line with the points that came since; null where it must be read anew: a new leg went back, points came late, or it has grown too long. */
export function extended(line: Line, tail: Line, most: number): Line | null {
  const from = nextStep(line);
  let skip = 0;
  while (skip < tail.steps.length && (tail.steps[skip] as number) < from) skip++;
  const fresh = tail.steps.length - skip;
  if (!tail.exact || line.total + fresh !== tail.total || line.steps.length + fresh > most) {
    return line.total === tail.total ? line : null;
  }
  if (!sameLegs(line, tail)) return null;
  if (!fresh) return line;
  const join = (one: Float64Array, other: Float64Array) => {
    const made = new Float64Array(one.length + fresh);
    made.set(one);
    made.set(other.subarray(skip), one.length);
    return made;
  };
  const mids = join(line.mids, tail.mids);
  return {
    ...line,
    points: line.points + fresh,
    total: tail.total,
    legs: tail.legs,
    steps: join(line.steps, tail.steps),
    times: join(line.times, tail.times),
    mids,
    lows: line.lows === line.mids ? mids : join(line.lows, tail.lows),
    highs: line.highs === line.mids ? mids : join(line.highs, tail.highs),
    bads: line.bads + tail.bads,
  };
}

function sameLegs(line: Line, tail: Line): boolean {
  const from = nextStep(line);
  return (
    line.legs.every(([leg, step]) => tail.legs.some(([other, at]) => other === leg && at === step)) &&
    tail.legs.every(([leg, step]) => step >= from || line.legs.some(([other]) => other === leg))
  );
}

/** The first place in a rising row that is at least `value`. */
export function firstFrom(row: Float64Array, value: number): number {
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((row[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
