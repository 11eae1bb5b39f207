/** Which metrics runs have: read once, searched here, and read again when runs come or log something new. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { inWords, post } from "../api";
import { useLive } from "../live";
import { runsOf } from "./lines";

export type KeyTold = { key: string; runs: number; points: number };
const MOST = 10_000;
const AGAIN = 15_000; // ms

export type Keys = {
  all: readonly string[];
  found: readonly string[];
  loading: boolean;
  problem: { what: string; next: string } | null;
};

export function useMetricKeys(runs: readonly string[], search: string): Keys {
  const [told, setTold] = useState<readonly KeyTold[]>([]);
  const [loading, setLoading] = useState(true);
  const [problem, setProblem] = useState<Keys["problem"]>(null);
  const [again, setAgain] = useState(0);
  const name = runs.join("\n");
  useEffect(() => {
    if (!name) {
      setTold([]);
      setLoading(false);
      return;
    }
    const gone = new AbortController();
    post("/api/v1/metrics/search", { body: { runs: name.split("\n"), limit: MOST }, signal: gone.signal })
      .then((answer) => {
        const { keys } = answer as { keys: KeyTold[] };
        setTold((before) => (same(before, keys) ? before : keys));
        setProblem(null);
        setLoading(false);
      })
      .catch((error: unknown) => {
        const words = inWords(error);
        if (!words) return;
        setProblem(words);
        setLoading(false);
      });
    return () => gone.abort();
  }, [name, again]);
  const [last, setLast] = useState(0);
  useLive((events) => {
    const changed = runsOf(events);
    if (changed !== "all" && !changed.some((run) => runs.includes(run))) return;
    if (told.length && Date.now() - last < AGAIN) return;
    setLast(Date.now());
    setAgain((count) => count + 1);
  });
  const all = useMemo(() => told.map(({ key }) => key), [told]);
  const found = useMemo(() => matching(all, search), [all, search]);
  return { all, found, loading, problem };
}

function same(one: readonly KeyTold[], other: readonly KeyTold[]): boolean {
  return one.length === other.length && one.every(({ key }, at) => key === other[at]?.key);
}

/** Keys that hold every word; where the words are a regular expression that fits, those it finds. Pure. */
export function matching(keys: readonly string[], search: string): readonly string[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return keys;
  const found = keys.filter((key) => words.every((word) => key.toLowerCase().includes(word)));
  if (found.length || !/[\\^$.*+?()[\]{}|]/.test(search)) return found;
  try {
    const pattern = new RegExp(search.trim(), "i");
    return keys.filter((key) => pattern.test(key));
  } catch {
    return found;
  }
}
