/** What the charts of a page share while a hand is on them: the place read, the window being moved, the run in front. */
import { type Signal, signal } from "@preact/signals";
import type { Window } from "./axis";

export type Sync = {
  /** Where along x is read, and in which chart the pointer is. */
  hover: Signal<{ x: number; chart: string } | null>;
  /** The window while it is dragged; null: as the address says. */
  moving: Signal<Window | null>;
  /** The run that stands out. */
  focus: Signal<string | null>;
};

export function makeSync(): Sync {
  return { hover: signal(null), moving: signal(null), focus: signal(null) };
}
