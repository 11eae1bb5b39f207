/** Searching a log on the server: all places of a text, one after the other, however long the log is. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type Got, get, inWords } from "../../../api";
import type { Source } from "./piece";

const PATH = "/api/v1/runs/{run_id}/logs/{leg}/{stream}/search";
const MOST = 1000;
const OVERLAP = 1000; // bytes: a text may begin in what was searched before
type Matches = Got<typeof PATH>;

export type Found = {
  /** Bytes at which lines with a match begin, in order. */
  places: readonly number[];
  /** There are more than these. */
  more: boolean;
  searching: boolean;
  fault: { what: string; next: string } | null;
};
const NONE: Found = { places: [], more: false, searching: false, fault: null };

const place = (from: Source) => ({ run_id: from.run, leg: from.leg, stream: from.stream });

export function firstError(from: Source): Promise<Matches> {
  return get(PATH, { path: place(from), query: { errors: true } });
}

/** The next line with this text after a byte, or the last before it; null where there is none. */
export async function nextMatch(from: Source, text: string, after: number, back: boolean): Promise<number | null> {
  for (let offset: number | null = after; offset !== null; ) {
    const found: Matches = await get(PATH, { path: place(from), query: { text, offset, back } });
    if (found.matches[0]) return found.matches[0].line_offset;
    offset = found.next;
  }
  return null;
}

export function useFind(from: Source | null, text: string, size: number): Found {
  const [found, setFound] = useState<Found>(NONE);
  const key = from ? `${from.run} ${from.leg} ${from.stream}` : "";
  const held = useRef({ key: "", size: 0 });
  useEffect(() => {
    if (!from || !text) {
      setFound(NONE);
      return;
    }
    const again = held.current.key === `${key} ${text}` && size >= held.current.size;
    if (again && size === held.current.size) return;
    if (!again) held.current = { key: "", size: 0 };
    const gone = new AbortController();
    const timer = setTimeout(
      () => {
        if (!again) setFound((old) => ({ ...old, searching: true }));
        const offset = again ? Math.max(0, held.current.size - OVERLAP) : 0; // of one that grew, what is new
        get(PATH, { path: place(from), query: { text, limit: MOST, offset }, signal: gone.signal })
          .then(({ matches, next, size: searched }) => {
            held.current = { key: `${key} ${text}`, size: searched };
            const fresh = matches.map(({ line_offset }) => line_offset);
            setFound((old) => ({
              places: !again ? fresh : old.more ? old.places : [...new Set([...old.places, ...fresh])],
              more: next !== null || (again && old.more),
              searching: false,
              fault: null,
            }));
          })
          .catch((error: unknown) => {
            const words = inWords(error);
            if (words) setFound({ ...NONE, fault: words });
          });
      },
      again ? 3000 : 250,
    );
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [key, text, size]);
  return found;
}
