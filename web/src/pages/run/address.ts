/** Addresses within a run's pages. */
import { href } from "../../url";

export function runPage(id: string, tab = "", params: Record<string, string | null | undefined> = {}): string {
  return href(`/runs/${encodeURIComponent(id)}${tab ? `/${tab}` : ""}`, params);
}

export type LogPlace = { leg: number; stream: string };

/** Where a part of a log is shown; `at` is a byte of it. */
export function logPage(id: string, log: LogPlace, more: { at?: number | null; find?: string } = {}): string {
  return runPage(id, "logs", {
    leg: log.stream === "supervisor" ? null : String(log.leg),
    log: log.stream === "out" ? null : log.stream,
    at: more.at == null ? null : String(more.at),
    find: more.find,
  });
}
