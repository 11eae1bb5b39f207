/** What happens, as it happens: one stream for the whole page, with a cursor, so that a break loses nothing.
 *
 * Read by hand rather than through EventSource: heartbeats are seen, so a connection that hangs is noticed; and a page
 * in the background lets its connection go, for a browser has only six of them for all its tabs. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { address, loginNeeded } from "./api";

export type LiveEvent = {
  event: "run_status_changed" | "run_changed" | "points_added" | "reset" | (string & {});
  run_id?: string;
  [more: string]: unknown;
};
export type Connection = "live" | "catching up" | "lost" | "asleep";

/** How the stream stands. */
export const connection = signal<Connection>("catching up");
/** Whether pages may read: what happens between their reading and the beginning of the stream is told by nobody. */
export const opened = signal(false);
/** When the server was last heard, in ms. What is shown is at least as new as that. */
export const heard = signal(Date.now());

type Listener = (events: readonly LiveEvent[]) => void;
const listeners = new Set<Listener>();
const SILENCE = 40_000; // the server says something every 15 s
const GATHER = 250; // ms: events that come together are told together
const LONG = 5000; // ms: a stream that the server ended after so long is only to be asked for anew
const PATIENCE = 3000; // ms: pages wait no longer for the stream to open, which it does at once unless something between holds it back
const LATER = [1000, 2000, 5000, 10_000];

let cursor = "";
let broken = false;
let running: AbortController | null = null;
let gathered: LiveEvent[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;

/** Hear events, several at a time. `reset` among them: something was missed or could not be read, so read anew. */
export function onEvents(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useLive(listener: Listener): void {
  const newest = useRef(listener);
  newest.current = listener;
  useEffect(() => onEvents((events) => newest.current(events)), []);
}

export function startLive(): void {
  document.addEventListener("visibilitychange", () => (document.hidden ? sleep() : wake()));
  setTimeout(open, PATIENCE);
  wake();
}

function open(): void {
  opened.value = true;
}

function sleep(): void {
  connection.value = "asleep";
  running?.abort();
  running = null;
}

function wake(): void {
  if (document.hidden) open();
  if (running || document.hidden) return;
  running = new AbortController();
  void follow(running.signal);
}

async function follow(gone: AbortSignal): Promise<void> {
  for (let tries = 0; !gone.aborted; tries++) {
    connection.value = "catching up";
    const began = Date.now();
    try {
      await listen(gone, () => {
        tries = 0;
      });
      if (Date.now() - began > LONG) continue;
    } catch {
      // told by the marker, and tried again
    }
    if (gone.aborted) return;
    connection.value = "lost";
    broken = true;
    open();
    await new Promise((done) => setTimeout(done, LATER[Math.min(tries, LATER.length - 1)]));
    if (loginNeeded.peek()) return;
  }
}

async function listen(gone: AbortSignal, alive: () => void): Promise<void> {
  const silent = new AbortController();
  let watch: ReturnType<typeof setTimeout> | undefined;
  const rearm = () => {
    clearTimeout(watch);
    watch = setTimeout(() => silent.abort(), SILENCE);
  };
  rearm();
  try {
    const answer = await fetch(address("/api/v1/live", { query: { cursor: cursor || null } }), {
      headers: { accept: "text/event-stream" },
      credentials: "same-origin",
      signal: AbortSignal.any([gone, silent.signal]),
    });
    if (answer.status === 401) loginNeeded.value = true;
    if (!answer.ok || !answer.body) throw new Error(`the stream answered ${answer.status}`);
    connection.value = "live";
    alive();
    if (broken || (opened.peek() && !cursor)) tell([{ event: "reset" }]);
    broken = false;
    open();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      rearm();
      heard.value = Date.now();
      const parsed = parse(rest + value);
      rest = parsed.rest;
      if (parsed.cursor) cursor = parsed.cursor;
      tell(parsed.events);
    }
  } finally {
    clearTimeout(watch);
  }
}

/** The whole events of a piece of the stream, the last id among them, and what is not whole yet. */
export function parse(given: string): { events: LiveEvent[]; cursor: string; rest: string } {
  const parts = given.replace(/\r\n/g, "\n").split("\n\n");
  const rest = parts.pop() ?? "";
  const events: LiveEvent[] = [];
  let last = "";
  for (const part of parts) {
    const lines = part.split("\n");
    const field = (name: string) =>
      lines
        .find((line) => line.startsWith(`${name}:`))
        ?.slice(name.length + 1)
        .trim() ?? "";
    last = field("id") || last;
    const data = field("data");
    if (!data || field("event") === "hello") continue;
    try {
      events.push(JSON.parse(data) as LiveEvent);
    } catch {
      // an event that cannot be read is a hint lost, no more
    }
  }
  return { events, cursor: last, rest };
}

function tell(events: LiveEvent[]): void {
  if (!events.length) return;
  gathered.push(...events);
  if (timer !== undefined) return;
  timer = setTimeout(() => {
    timer = undefined;
    const told = gathered;
    gathered = [];
    for (const listener of [...listeners]) listener(told);
  }, GATHER);
}
