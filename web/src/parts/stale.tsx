/** How old what is shown is: live, catching up, or not heard of for so long. */
import { signal, useComputed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rough } from "../format";
import { type Connection, connection, heard } from "../live";

/** Unix seconds, moving on once a second while something on the page reads them. */
export const now = signal(Date.now() / 1000);
let readers = 0;
let ticking: ReturnType<typeof setInterval> | undefined;

/** It moves on every `step` seconds. */
export function useNow(step = 1): number {
  useEffect(() => {
    readers += 1;
    if (readers === 1)
      ticking = setInterval(() => {
        now.value = Date.now() / 1000;
      }, 1000);
    return () => {
      readers -= 1;
      if (readers === 0) {
        clearInterval(ticking);
        ticking = undefined;
      }
    };
  }, []);
  return useComputed(() => Math.floor(now.value / step) * step).value;
}

const WORDS: Record<Connection, string> = {
  live: "Live",
  "catching up": "Catching up",
  lost: "Not connected",
  asleep: "Paused",
};
const WHY: Record<Connection, string> = {
  live: "Changes appear here as they happen",
  "catching up": "Connecting to the server",
  lost: "The server does not answer. This page keeps trying and shows the last known data",
  asleep: "Paused in the background; it catches up when you come back",
};

/** In the bar, for the whole page. */
export function LiveMarker() {
  const at = useNow();
  const state = connection.value;
  const age = at - heard.value / 1000;
  return (
    <span class={`live ${state === "live" ? "on" : state}`} title={WHY[state]} role="status">
      <span class="dot" />
      <span class="words">{state === "lost" ? `As of ${rough(age)} ago` : WORDS[state]}</span>
    </span>
  );
}

/** Beside one thing that was read at a time (unix seconds): says its age once that is more than `after` seconds. */
export function AsOf({ time, after = 10 }: { time: number | null; after?: number }) {
  const at = useNow();
  if (time === null || at - time < after) return null;
  return <span class="as-of">as of {rough(at - time)} ago</span>;
}
