/** The rows of the list as they are now: read when what is asked for changes, and kept current by the live stream. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useLive } from "../../live";
import { type Query, Rows } from "./rows";
import { forget } from "./spark";

const REFRESH = 1000; // ms between two reads of changed runs
const AGAIN = 60_000; // ms between two reads of runs that are silent
const LOOK = 3000; // ms between two looks for new ones

/** The old rows stay until the new ones are there, so that nothing blinks. */
export function useRows(
  query: Query,
  opened: ReadonlySet<string>,
): { rows: Rows | null; reload: () => void; changed: (ids: ReadonlySet<string>) => void } {
  const [shown, setShown] = useState<Rows | null>(null);
  const [again, setAgain] = useState(0);
  const key = JSON.stringify(query);
  // `key` is what the query says, and `again` asks once more
  useEffect(() => {
    const rows = new Rows(query, opened);
    let left = false;
    void rows.start().then(() => {
      if (left) return;
      setShown((before) => {
        before?.stop();
        if (rows.fault.peek() && before && rows.parts.length === 0) {
          before.fault.value = rows.fault.peek();
          return before;
        }
        return rows;
      });
    });
    return () => {
      left = true;
    };
  }, [key, again]);
  const gathered = useRef({ ids: new Set<string>(), look: false });
  const refresh = useThrottled(REFRESH, () => {
    const { ids } = gathered.current;
    gathered.current.ids = new Set();
    forget(ids);
    shown?.heard(ids).catch(() => undefined);
  });
  useEffect(() => {
    const timer = setInterval(() => shown?.heard(shown.quiet()).catch(() => undefined), AGAIN);
    return () => clearInterval(timer);
  }, [shown]);
  const look = useThrottled(LOOK, () => shown?.look().catch(() => undefined));
  useLive((events) => {
    if (events.some(({ event }) => event === "reset")) setAgain((count) => count + 1);
    for (const { event, run_id: id } of events) {
      if (!id) continue;
      if (shown?.knows(id)) gathered.current.ids.add(id);
      if (event !== "points_added") look();
    }
    if (gathered.current.ids.size) refresh();
  });
  return {
    rows: shown,
    reload: () => setAgain((count) => count + 1),
    changed: (ids) => {
      for (const id of ids) gathered.current.ids.add(id);
      refresh();
      look();
    },
  };
}

/** At once, then at most every so many ms; the last call is never lost. */
function useThrottled(pause: number, act: () => void): () => void {
  const newest = useRef(act);
  newest.current = act;
  const state = useRef<{ timer: ReturnType<typeof setTimeout> | undefined; again: boolean }>({
    timer: undefined,
    again: false,
  });
  useEffect(() => () => clearTimeout(state.current.timer), []);
  const call = () => {
    const now = state.current;
    if (now.timer !== undefined) {
      now.again = true;
      return;
    }
    now.again = false;
    newest.current();
    now.timer = setTimeout(() => {
      now.timer = undefined;
      if (now.again) call();
    }, pause);
  };
  return call;
}
