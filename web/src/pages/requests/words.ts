/** Requests in words: how one stands, and how far its answer is. */
import type { Got } from "../../api";
import { duration, NONE } from "../../format";
import type { State } from "../../parts/badge";

export type Row = Got<"/api/v1/requests">["requests"][number];
export type Details = Got<"/api/v1/requests/{id}">;
type Style = "good" | "bad" | "muted" | "";

/** The outcomes that are nobody's fault, or good. */
const BADGES: Record<string, State> = { done: "finished", cancelled: "cancelled" };
const OPEN: Record<string, State> = { accepted: "submitted", submitted: "waiting", running: "running" };
const OUTCOMES: Record<string, string> = {
  out_of_memory: "out of memory",
  time_limit: "out of time",
  node_lost: "node lost",
};

/** The badge of a request: a run's shapes and colours, with the request's own word. */
export function badge(row: Pick<Row, "state" | "outcome">): { state: State; word: string } {
  const open = OPEN[row.state];
  if (open && !row.outcome) return { state: open, word: row.state === "submitted" ? "queued" : row.state };
  const word = row.outcome ?? row.state;
  return { state: BADGES[word] ?? "failed", word: OUTCOMES[word] ?? word };
}

export function isOpen(row: Pick<Row, "state" | "outcome">): boolean {
  return row.state in OPEN && !row.outcome;
}

/** Where the terminal reply is. */
export function reply(row: Pick<Row, "reply" | "state" | "outcome">): { words: string; style: Style } {
  const { reply: told } = row;
  if (!told) return { words: isOpen(row) ? "after the run ends" : "none requested", style: "muted" };
  if (told.sent !== null) return { words: "sent", style: "good" };
  return told.error
    ? { words: `tried ${told.tries}×: ${told.error}`, style: "bad" }
    : { words: "waiting for the broker", style: "muted" };
}

/** How long it took, or has been going. */
export function took(row: Pick<Row, "received" | "settled" | "state">, now: number): string {
  if (row.state === "refused") return NONE;
  return duration((row.settled ?? now) - row.received);
}

/** A word beside one that is still open and has a deadline. */
export function deadline(row: Pick<Row, "deadline" | "state" | "outcome">, now: number): string {
  if (row.deadline === null || !isOpen(row)) return "";
  const left = row.deadline - now;
  return left > 0 ? `${duration(left)} left` : "past its deadline";
}

/** A setting or metric as one reads it. */
export function value(given: unknown): string {
  return typeof given === "string" ? given : JSON.stringify(given);
}
