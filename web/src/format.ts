/** Numbers, times, durations and sizes as people read them. A dash stands for what is not known; 0 is written 0. */

export const NONE = "–";
export type Given = number | "NaN" | "Infinity" | "-Infinity" | string | null | undefined;

/** The API's numbers: JSON has no word for three of them. */
export function toNumber(given: Given): number | null {
  if (given === null || given === undefined || given === "") return null;
  return typeof given === "number" ? given : Number(given);
}

/** About five digits, as short as they come: 0.001234, 1.25, 12,345, 1.2e-7. */
export function num(given: Given, digits = 5): string {
  const value = toNumber(given);
  if (value === null) return NONE;
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4)
    return value
      .toExponential(Math.max(0, digits - 2))
      .replace(/\.?0+e/, "e")
      .replace("e+", "e")
      .replace("-", "−");
  if (Number.isInteger(value)) return whole(value);
  const kept = Number(value.toPrecision(digits));
  return (size >= 1e4 ? whole(Math.round(kept)) : String(kept)).replace("-", "−");
}

/** With thin commas: 1,234,567. */
export function whole(given: number | null | undefined): string {
  return given === null || given === undefined ? NONE : Math.round(given).toLocaleString("en-US").replace("-", "−");
}

/** 950, 1.2 k, 3.4 M, 5 G. */
export function short(given: number | null | undefined): string {
  if (given === null || given === undefined || !Number.isFinite(given)) return NONE;
  for (const [size, unit] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ] as const) {
    const scale = unit === "k" ? 1e3 : size;
    if (Math.abs(given) >= size) return `${Number((given / scale).toPrecision(3))} ${unit}`;
  }
  return whole(given);
}

export function percent(fraction: number | null | undefined, digits = 0): string {
  return fraction === null || fraction === undefined || Number.isNaN(fraction)
    ? NONE
    : `${(fraction * 100).toFixed(digits)} %`;
}

export function bytes(given: number | null | undefined): string {
  if (given === null || given === undefined) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = given;
  let at = 0;
  for (; Math.abs(value) >= 1000 && at < units.length - 1; at++) value /= 1024;
  return `${at === 0 ? Math.round(value) : Number(value.toPrecision(3))} ${units[at]}`;
}

/** Two parts at most: 45 s, 3 min, 2 h 05 min, 3 d 4 h. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  const all = Math.max(0, seconds);
  if (all < 1) return all === 0 ? "0 s" : "<1 s";
  if (all < 60) return `${Math.floor(all)} s`;
  const minutes = Math.floor(all / 60);
  if (minutes < 60)
    return minutes < 10 && all % 60 >= 1 ? `${minutes} min ${Math.floor(all % 60)} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** One part: 45 s, 3 min, 2 h, 3 d. */
export function rough(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  const all = Math.max(0, seconds);
  if (all < 60) return `${Math.floor(all)} s`;
  if (all < 3600) return `${Math.floor(all / 60)} min`;
  if (all < 2 * 86400) return `${Math.floor(all / 3600)} h`;
  return `${Math.floor(all / 86400)} d`;
}

export function ago(time: number | null | undefined, now: number): string {
  return time === null || time === undefined ? NONE : `${rough(now - time)} ago`;
}

/** Unix seconds as this browser's local time: 14:05 today, 12 Nov 14:05 this year, 2025-11-12 14:05 before. */
export function when(time: number | null | undefined, now: number): string {
  if (time === null || time === undefined) return NONE;
  const at = new Date(time * 1000);
  const today = new Date(now * 1000);
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (at.toDateString() === today.toDateString()) return clock;
  if (at.getFullYear() === today.getFullYear()) return `${at.getDate()} ${MONTHS[at.getMonth()]} ${clock}`;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`;
}

/** The whole of it, for a tooltip. */
export function stamp(time: number | null | undefined): string {
  return time === null || time === undefined
    ? NONE
    : new Date(time * 1000).toISOString().replace("T", " ").slice(0, 19).concat(" UTC");
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function two(value: number): string {
  return String(value).padStart(2, "0");
}
