/** What a page of a run shows, read from the server and kept current: the old stays until the new is there, so that nothing blinks. */
import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { type Got, get, inWords, Problem } from "../../api";
import { useLive } from "../../live";

export type Overview = Got<"/api/v1/runs/{run_id}/overview">;
export type Fault = { what: string; next: string; status: number };
export type Reading<T> = {
  data: T | null;
  fault: Fault | null;
  /** Unix seconds of the last answer. */
  readAt: number | null;
  again: () => void;
};

export type How = {
  /** Seconds after which it is read again though nothing was heard; 0: never. */
  every?: number;
  /** Read also when only points came. */
  points?: boolean;
  /** Seconds between two readings, however much happens. */
  pause?: number;
};

/** `key` says what is read; another one begins anew. */
export function useReading<T>(
  run: string,
  key: string,
  read: (signal: AbortSignal) => Promise<T>,
  { every = 0, points = false, pause = 1.5 }: How = {},
): Reading<T> {
  const [state, setState] = useState<{ key: string; data: T | null; fault: Fault | null; readAt: number | null }>({
    ...{ key, data: null, fault: null, readAt: null },
  });
  const newest = useRef(read);
  newest.current = read;
  const asked = useRef<{ at: number; timer: ReturnType<typeof setTimeout> | undefined; gone: AbortController }>({
    ...{ at: 0, timer: undefined, gone: new AbortController() },
  });
  const now = () => {
    const ask = asked.current;
    ask.gone.abort();
    ask.gone = new AbortController();
    ask.at = Date.now();
    newest.current(ask.gone.signal).then(
      (data) => setState({ key, data, fault: null, readAt: Date.now() / 1000 }),
      (error: unknown) => {
        const words = inWords(error);
        const status = error instanceof Problem ? error.status : 0;
        if (words) setState((old) => ({ ...old, key, fault: { ...words, status } }));
      },
    );
  };
  const soon = () => {
    const ask = asked.current;
    if (ask.timer !== undefined) return;
    ask.timer = setTimeout(
      () => {
        ask.timer = undefined;
        now();
      },
      Math.max(0, ask.at + pause * 1000 - Date.now()),
    );
  };
  useEffect(() => {
    now();
    return () => {
      asked.current.gone.abort();
      clearTimeout(asked.current.timer);
      asked.current.timer = undefined;
    };
  }, [key]);
  useEffect(() => {
    if (!every) return;
    const timer = setInterval(() => !document.hidden && soon(), every * 1000);
    return () => clearInterval(timer);
  }, [every, key]);
  useLive((events) => {
    const ours = events.some(
      ({ event, run_id }) => event === "reset" || (run_id === run && (points || event !== "points_added")),
    );
    if (ours) soon();
  });
  const same = state.key === key;
  return {
    data: same ? state.data : null,
    fault: same ? state.fault : null,
    readAt: same ? state.readAt : null,
    again: soon,
  };
}

const OVER = new Set(["finished", "failed", "cancelled"]);

export function isOver(state: string): boolean {
  return OVER.has(state);
}

/** The run that the page is of, as all its tabs know it. */
export const RunContext = createContext<Reading<Overview>>({ data: null, fault: null, readAt: null, again: () => {} });

export function useRun(): Reading<Overview> {
  return useContext(RunContext);
}

export function useOverview(id: string): Reading<Overview> {
  const [live, setLive] = useState(true);
  const reading = useReading(
    id,
    id,
    (signal) => get("/api/v1/runs/{run_id}/overview", { path: { run_id: id }, signal }),
    { every: live ? 15 : 0, points: true },
  );
  const state = reading.data?.run.state;
  useEffect(() => setLive(state === undefined || !isOver(state)), [state]);
  return reading;
}
