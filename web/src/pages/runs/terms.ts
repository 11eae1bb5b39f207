/** Parts of a filter, as the page writes them. */
import { quoted } from "./columns";

/** A group's value as the address holds it. */
export function groupKey(value: string | null): string {
  return value === null ? "-" : `=${value}`;
}

export function groupFilter(by: string, value: string | null): string {
  const [, room, key] = /^(params|tags)\.(.+)$/s.exec(by) ?? [];
  const name = room && key ? `${room}.${quoted(key)}` : by;
  return value === null ? `${name} is null` : `${name} = ${inQuotes(value)}`;
}

/** A text as the filter language reads it. */
export function inQuotes(value: string): string {
  return `'${value.replace(/\\/g, "\\\\").replace(/'/g, "\\'")}'`;
}

/** Several filters as one; empty ones say nothing. */
export function all(filters: readonly string[]): string {
  const said = filters.filter((one) => one.trim());
  return said.length > 1 ? said.map((one) => `(${one})`).join(" and ") : (said[0] ?? "");
}
