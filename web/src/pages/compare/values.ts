/** The best values of a few metrics of all compared runs, for axes. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { post } from "../../api";
import { bestOf, fieldOf, lessIsBetter, type Run, type Summary } from "./runs";

export type Values = (run: Run, field: string) => string | number | null;
type Told = Record<string, Record<string, Summary>>;

/** `metrics.KEY` is the best value of a metric; the other fields are the run's own. */
export function useValues(runs: readonly Run[], fields: readonly string[]): Values {
  const [told, setTold] = useState<Told>({});
  const ids = runs.map(({ id }) => id).join("\n");
  const keys = [...new Set(fields.filter((field) => field.startsWith("metrics.")).map((field) => field.slice(8)))]
    .sort()
    .join("\n");
  useEffect(() => {
    if (!ids || !keys) return;
    const gone = new AbortController();
    for (const key of keys.split("\n")) {
      const body = { runs: ids.split("\n"), text: key, limit: 1000, values: true };
      post("/api/v1/metrics/search", { body, signal: gone.signal })
        .then((answer) => {
          const row = (answer as { keys: { key: string; values: Record<string, Summary> }[] }).keys.find(
            (one) => one.key === key,
          );
          setTold((before) => ({ ...before, [key]: row?.values ?? {} }));
        })
        .catch(() => undefined); // the axis stays empty, and the page says so
    }
    return () => gone.abort();
  }, [ids, keys]);
  return useMemo<Values>(
    () => (run, field) => {
      if (!field.startsWith("metrics.")) return fieldOf(run, field);
      const key = field.slice(8);
      return bestOf(told[key]?.[run.id], lessIsBetter(key));
    },
    [told],
  );
}

/** What an axis can show: params and fields that vary, then metrics. */
export function nameOf(field: string): string {
  if (field.startsWith("metrics.")) return `${lessIsBetter(field.slice(8)) ? "lowest" : "highest"} ${field.slice(8)}`;
  return field.replace(/^params\./, "");
}

/** The metric to look at first: one of validation, else a loss, else any. */
export function likelyMetric(keys: readonly string[]): string | null {
  const plain = keys.filter((key) => !key.startsWith("system/"));
  return (
    plain.find((key) => /val|eval|test/i.test(key) && /acc|loss|f1|score/i.test(key)) ??
    plain.find((key) => /loss|acc/i.test(key)) ??
    plain[0] ??
    null
  );
}
