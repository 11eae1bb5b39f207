/** Smoothing: an exponential mean that knows how far apart points are. Pure.
 *
 * The weight is that of one unit along x, and a unit is a thousandth of the whole line, or the distance of its points if it has fewer. So
 * a line of evenly logged points is smoothed as people know it, one that logs now often and now seldom is not pulled by where it logs often,
 * and neither zooming nor the resolution changes the curve. A gap stays a gap, and spoils nothing after it. */
export function smoothed(xs: Float64Array, values: Float64Array, weight: number, unit: number): Float64Array {
  if (!(weight > 0) || !(unit > 0)) return values;
  const kept = Math.min(weight, 0.9999);
  const made = new Float64Array(values.length);
  let mean = 0;
  let mass = 0; // how much of the mean is real: the first points do not start from zero
  let before = Number.NaN;
  for (let at = 0; at < values.length; at++) {
    const value = values[at] as number;
    const x = xs[at] as number;
    if (!Number.isFinite(value) || !Number.isFinite(x)) {
      made[at] = Number.NaN;
      continue;
    }
    const keep = kept ** (Number.isNaN(before) ? 1 : Math.max((x - before) / unit, 0.001));
    mean = mean * keep + value * (1 - keep);
    mass = mass * keep + (1 - keep);
    made[at] = mean / mass;
    before = x;
  }
  return made;
}

/** The unit of smoothing: of the whole line, so that a zoom does not change it. */
export function unitOf(from: number, to: number, points: number): number {
  return points > 1 ? (to - from) / Math.min(points - 1, 1000) : 1;
}
