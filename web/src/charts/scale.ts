/** How far the axes of a chart reach. Pure. */
import type { Window } from "./axis";
import type { Curve } from "./read";

/** From the first to the last x of all curves; null where there is nothing to draw. */
export function reachX(curves: readonly Curve[], log: boolean): Window | null {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const { xs, mids } of curves) {
    for (let at = 0; at < xs.length; at++) {
      const x = xs[at] as number;
      if (!Number.isFinite(mids[at] as number) || (log && !(x > 0))) continue;
      if (x < low) low = x;
      if (x > high) high = x;
    }
  }
  return low <= high ? padded(low, high, log, 0) : null;
}

/** From the lowest to the highest of what shows in a window of x, spikes too; with `calm`, without the outermost hundredths. */
export function reachY(curves: readonly Curve[], window: Window, log: boolean, calm = false): Window | null {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  const all: number[] = [];
  for (const { xs, lows, highs, mids, smooth } of curves) {
    for (let at = 0; at < xs.length; at++) {
      const x = xs[at] as number;
      if (x < window[0] || x > window[1]) continue;
      const even = smooth[at] as number; // may lag behind, outside of all values in view
      if (even < low && (!log || even > 0)) low = even;
      if (even > high) high = even;
      if (calm) {
        const value = mids[at] as number;
        if (Number.isFinite(value) && (!log || value > 0)) all.push(value);
        continue;
      }
      const bottom = lows[at] as number;
      const top = highs[at] as number;
      if (bottom < low && (!log || bottom > 0)) low = bottom;
      if (top > high) high = top;
      if (log && bottom <= 0 && top > 0 && top < low) low = top;
    }
  }
  if (calm && all.length) {
    all.sort((one, other) => one - other);
    const from = all[Math.floor((all.length - 1) * 0.01)] as number;
    const to = all[Math.ceil((all.length - 1) * 0.99)] as number;
    [low, high] = [from, to];
  }
  return low <= high && (!log || high > 0) ? padded(low, high, log, 0.05) : null;
}

/** A little room on both sides; a flat line gets some around it. */
export function padded(low: number, high: number, log: boolean, share: number): Window {
  if (log) {
    if (low === high) return [low / 2, high * 2];
    const by = (high / low) ** share;
    return [low / by, high * by];
  }
  if (low === high) {
    const room = Math.abs(low) * 0.1 || 1;
    return [low - room, high + room];
  }
  const room = (high - low) * share;
  return [low - room, high + room];
}

/** A window moved by a share of its width, or made wider or narrower around a place in it (0 to 1). */
export function moved(window: Window, by: number, log: boolean): Window {
  if (log) {
    const ratio = (window[1] / window[0]) ** by;
    return [window[0] * ratio, window[1] * ratio];
  }
  const far = (window[1] - window[0]) * by;
  return [window[0] + far, window[1] + far];
}

export function scaled(window: Window, by: number, around: number, log: boolean): Window {
  const [low, high] = log ? [Math.log(window[0]), Math.log(window[1])] : window;
  const centre = low + (high - low) * around;
  const made = [centre - (centre - low) * by, centre + (high - centre) * by] as const;
  return log ? [Math.exp(made[0]), Math.exp(made[1])] : made;
}

/** How many drawn places and how many real points lie in a window: "1,200 of 1.2 M points". */
export function counted(
  curves: readonly (Curve & { points: number })[],
  window: Window,
): { drawn: number; real: number } {
  let drawn = 0;
  let real = 0;
  for (const { xs, points } of curves) {
    let inside = 0;
    for (let at = 0; at < xs.length; at++)
      if ((xs[at] as number) >= window[0] && (xs[at] as number) <= window[1]) inside++;
    drawn += inside;
    real += xs.length ? Math.round((points * inside) / xs.length) : 0;
  }
  return { drawn, real };
}
