/** The runs that are compared: named in the address, or all that a filter finds. Editable in place. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { inWords, post } from "../../api";
import { useLive } from "../../live";
import { list, text, useParam } from "../../url";
import type { Run } from "./runs";

const DRAWN = 10; // on open; the rest on click
const MOST = 1000;
const AT_ONCE = 150;

export type Selection = {
  runs: readonly Run[];
  drawn: ReadonlySet<string>;
  loading: boolean;
  problem: { what: string; next: string } | null;
  missing: readonly string[];
  filter: string;
  baseline: string;
  setFilter: (filter: string) => void;
  add: (id: string) => void;
  remove: (id: string) => void;
  draw: (ids: readonly string[]) => void;
  pin: (id: string) => void;
};

const ids = list();
const named = text();

/** Which are drawn: those that were chosen, else the first ten, and the baseline in any case. Pure. */
export function drawnOf(runs: readonly string[], chosen: readonly string[], baseline: string): Set<string> {
  const kept = chosen.length ? chosen.filter((id) => runs.includes(id) || id === "none") : runs.slice(0, DRAWN);
  return new Set(runs.includes(baseline) ? [...kept, baseline] : kept);
}

export function useSelection(): Selection {
  const [wanted, setWanted] = useParam("runs", ids);
  const [filter, setFilter] = useParam("filter", named);
  const [chosen, setChosen] = useParam("draw", ids);
  const [baseline, setBaseline] = useParam("base", named);
  const [read, setRead] = useState<{ runs: readonly Run[]; loading: boolean; problem: Selection["problem"] }>({
    runs: [],
    loading: true,
    problem: null,
  });
  const [again, setAgain] = useState(0);
  useEffect(() => {
    const gone = new AbortController();
    if (!wanted.length && !filter) {
      setRead({ runs: [], loading: false, problem: null });
      return;
    }
    setRead((before) => ({ ...before, loading: true }));
    fetchRuns(wanted, filter, gone.signal, again)
      .then((runs) => setRead({ runs, loading: false, problem: null }))
      .catch((error: unknown) => {
        const problem = inWords(error);
        if (problem) setRead((before) => ({ ...before, loading: false, problem }));
      });
    return () => gone.abort();
  }, [wanted, filter, again]);
  useLive((events) => {
    const changed = events.some(
      ({ event, run_id }) =>
        event === "reset" || (event !== "points_added" && read.runs.some(({ id }) => id === run_id)),
    );
    if (changed) setAgain((count) => count + 1);
  });
  return useMemo(() => {
    const { runs } = read;
    const known = runs.map(({ id }) => id);
    const drawn = drawnOf(known, chosen, baseline);
    return {
      ...read,
      drawn,
      filter,
      baseline: known.includes(baseline) ? baseline : "",
      missing: read.loading ? [] : wanted.filter((id) => !known.includes(id)),
      setFilter: (to) => setFilter(to, { push: true }),
      add: (id) => {
        if (!wanted.includes(id)) setWanted([...wanted, id], { push: true });
        if (chosen.length) setChosen([...chosen, id]);
      },
      remove: (id) =>
        setWanted(
          (wanted.length ? wanted : known).filter((one) => one !== id),
          { push: true },
        ),
      draw: (to) => setChosen(to.length ? to : ["none"]),
      pin: (id) => setBaseline(id === baseline ? "" : id),
    };
  }, [read, chosen, baseline, wanted, filter, setFilter, setWanted, setChosen, setBaseline]);
}

async function fetchRuns(
  wanted: readonly string[],
  filter: string,
  signal: AbortSignal,
  _turn: number,
): Promise<Run[]> {
  const found: Run[] = [];
  const read = async (body: object) => {
    const answer = (await post("/api/v1/runs/search", {
      body: { metrics: false, archived: null, ...body },
      signal,
    })) as { runs: Run[] };
    for (const run of answer.runs) if (!found.some(({ id }) => id === run.id)) found.push(run);
  };
  for (let at = 0; at < wanted.length; at += AT_ONCE) {
    const some = wanted.slice(at, at + AT_ONCE);
    await read({
      filter: `id in (${some.map((id) => `'${id.replace(/[^\w-]/g, "")}'`).join(", ")})`,
      limit: some.length,
    });
  }
  found.sort((one, other) => wanted.indexOf(one.id) - wanted.indexOf(other.id));
  if (filter) await read({ filter, limit: MOST, archived: false });
  return found;
}

/** Runs whose name holds what was typed, to add. */
export async function suggest(words: string, signal: AbortSignal): Promise<Run[]> {
  const answer = await post("/api/v1/runs/search", {
    body: { text: words, limit: 12, metrics: false, params: false },
    signal,
  });
  return (answer as { runs: Run[] }).runs;
}
