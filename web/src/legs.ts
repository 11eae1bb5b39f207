/** The limit on a run's legs, if it is worth showing: somebody set it, or it is nearly reached. */
const DEFAULT_MAX_LEGS = 1000; // what a run has if its params file sets none
const NEAR = 0.9;

export function shownLegLimit({ now, max }: { now: number; max: number | null }): number | null {
  return max !== null && (max !== DEFAULT_MAX_LEGS || now >= NEAR * max) ? max : null;
}
