/** Ticks: where they are, and as short as they can be told. Pure. */
import type { Axis } from "./axis";

const NICE = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
/** Steps between ticks of a duration: seconds, minutes, hours, days. */
export const DURATION_STEPS: number[] = [
  0.001,
  0.01,
  0.1,
  ...NICE,
  ...[2, 5, 7, 14, 30, 60, 90, 180, 365].map((days) => days * 86400),
];

/** A tick of relative time as short as it can be told: 45s, 3m, 2h30, 4d. */
export function shortDuration(seconds: number): string {
  const sign = seconds < 0 ? "−" : "";
  const all = Math.abs(seconds);
  if (all < 60) return `${sign}${Number(all.toPrecision(3))}s`;
  const minutes = Math.round(all / 60);
  if (all < 3600) return all % 60 ? `${sign}${Math.floor(all / 60)}m${Math.round(all % 60)}` : `${sign}${minutes}m`;
  if (all < 2 * 86400)
    return minutes % 60
      ? `${sign}${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, "0")}`
      : `${sign}${minutes / 60}h`;
  const hours = Math.round(all / 3600);
  return hours % 24 ? `${sign}${Math.floor(hours / 24)}d${hours % 24}h` : `${sign}${hours / 24}d`;
}

/** A number as short as a tick can tell it: 1.5k, 20M, 1e-5. */
export function shortNumber(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e15 || size < 1e-4)
    return value
      .toExponential()
      .replace(/(\.\d{2})\d+/, "$1")
      .replace("e+", "e")
      .replace(/-/g, "−");
  for (const [scale, unit] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ] as const) {
    const by = unit === "k" ? 1e3 : scale;
    if (size >= scale) return `${Number((value / by).toPrecision(6))}${unit}`.replace("-", "−");
  }
  return String(Number(value.toPrecision(6))).replace("-", "−");
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Ticks of local time: the day where a day begins, else the clock; years where they are far apart. */
export function clockTicks(splits: readonly number[]): string[] {
  const apart = splits.length > 1 ? (splits[1] as number) - (splits[0] as number) : 0;
  return splits.map((split) => {
    const at = new Date(split * 1000);
    const midnight = at.getHours() === 0 && at.getMinutes() === 0 && at.getSeconds() === 0;
    if (apart >= 300 * 86400) return String(at.getFullYear());
    if (midnight || apart >= 86400) return `${at.getDate()} ${MONTHS[at.getMonth()]}`;
    const clock = `${at.getHours()}:${String(at.getMinutes()).padStart(2, "0")}`;
    return apart >= 60 ? clock : `${clock}:${String(at.getSeconds()).padStart(2, "0")}`;
  });
}

/** Ticks of a log axis: round numbers, at most `most`; where it is too short for those, evenly apart. */
export function logTicks(low: number, high: number, most: number): number[] {
  for (const steps of [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    const found = inDecades(steps, low, high, 1);
    if (found.length < 3 && steps.length === 5) return evenTicks(low, high, most);
    if (found.length <= most) return found;
  }
  const decades = Math.log10(high / low);
  return inDecades([1], low, high, Math.ceil((decades + 1) / most));
}

function inDecades(steps: readonly number[], low: number, high: number, every: number): number[] {
  const found: number[] = [];
  const from = Math.floor(Math.log10(low));
  for (let power = Math.ceil(from / every) * every - every; power <= Math.log10(high); power += every) {
    for (const step of steps) {
      const tick = Number(`${step}e${power}`);
      if (tick >= low && tick <= high) found.push(tick);
    }
  }
  return found;
}

function evenTicks(low: number, high: number, most: number): number[] {
  const rough = (high - low) / Math.max(2, Math.min(4, most));
  const scale = 10 ** Math.floor(Math.log10(rough));
  const apart = ([1, 2, 5, 10].find((step) => step * scale >= rough) ?? 10) * scale;
  const found: number[] = [];
  for (let tick = Math.ceil(low / apart) * apart; tick <= high; tick += apart) found.push(Number(tick.toPrecision(12)));
  return found;
}

/** The words for ticks along an axis. */
export function wordsFor(axis: Axis, splits: readonly (number | null)[]): (string | null)[] {
  if (axis === "wall") return clockTicks(splits.filter((split) => split !== null));
  return splits.map((split) =>
    split == null ? null : axis === "relative" ? shortDuration(split) : shortNumber(split),
  );
}
