/** Reading a chart where the pointer is: every run's nearest point, by value. Pure. */
import { firstFrom } from "./line";

export type Curve = {
  id: string;
  xs: Float64Array;
  lows: Float64Array;
  mids: Float64Array;
  highs: Float64Array;
  smooth: Float64Array;
};

export type Reading = { id: string; at: number; x: number; value: number; low: number; high: number; smooth: number };

/** The place of the point nearest to x that has a value; -1 where there is none within `reach`. */
export function nearest(curve: Curve, x: number, reach = Number.POSITIVE_INFINITY): number {
  const middle = firstFrom(curve.xs, x);
  let best = -1;
  let least = reach;
  for (const [start, by] of [
    [middle, 1],
    [middle - 1, -1],
  ] as const) {
    for (let at = start; at >= 0 && at < curve.xs.length; at += by) {
      const far = Math.abs((curve.xs[at] as number) - x);
      if (!(far <= least)) break;
      if (Number.isFinite(curve.mids[at] as number)) {
        if (far < least || best < 0) [best, least] = [at, far];
        break;
      }
    }
  }
  return best;
}

/** All curves at x, highest first; `reach`: how far away a point may lie to count. */
export function readings(curves: readonly Curve[], x: number, reach: number): Reading[] {
  const found: Reading[] = [];
  for (const curve of curves) {
    const at = nearest(curve, x, reach);
    if (at < 0) continue;
    found.push({
      id: curve.id,
      at,
      x: curve.xs[at] as number,
      value: curve.mids[at] as number,
      low: curve.lows[at] as number,
      high: curve.highs[at] as number,
      smooth: curve.smooth[at] as number,
    });
  }
  return found.sort((one, other) => other.smooth - one.smooth || (one.id < other.id ? -1 : 1));
}

/** The reading nearest in height to the pointer; null for none. */
export function closest(found: readonly Reading[], height: number, scale: (value: number) => number): Reading | null {
  let best: Reading | null = null;
  for (const one of found) {
    if (best === null || Math.abs(scale(one.smooth) - scale(height)) < Math.abs(scale(best.smooth) - scale(height)))
      best = one;
  }
  return best;
}
