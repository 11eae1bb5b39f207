/** What a page reads from the server: once, again when told to or when something was missed, and every so often while it is looked at. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { inWords } from "./api";
import { useLive } from "./live";

export type Fault = { what: string; next: string };
export type Reading<T> = { data: T | null; fault: Fault | null; again: () => void };

/** `key` names what is read: another one is read anew. `every` in ms; 0: only when told to. */
export function useReading<T>(key: string, read: (signal: AbortSignal) => Promise<T>, every = 0): Reading<T> {
  const [seen, setSeen] = useState<{ key: string; data: T | null; fault: Fault | null }>({
    key,
    data: null,
    fault: null,
  });
  const [round, setRound] = useState(0);
  const newest = useRef(read);
  newest.current = read;
  useEffect(() => {
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      if (!document.hidden)
        try {
          const data = await newest.current(gone.signal);
          setSeen({ key, data, fault: null });
        } catch (error) {
          const fault = inWords(error);
          if (fault) setSeen((before) => ({ key, data: before.key === key ? before.data : null, fault }));
        }
      if (every && !gone.signal.aborted) timer = setTimeout(look, every);
    };
    void look();
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [key, every, round]);
  const again = useCallback(() => setRound((count) => count + 1), []);
  useLive((events) => {
    if (events.some(({ event }) => event === "reset")) again();
  });
  return seen.key === key ? { ...seen, again } : { data: null, fault: null, again };
}
