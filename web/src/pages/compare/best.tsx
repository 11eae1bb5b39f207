/** Metrics side by side: the best of each run, whose is best, and how far from the baseline. */
import { useEffect, useState } from "preact/hooks";
import { inWords, post } from "../../api";
import type { Named } from "../../charts/chart";
import { toggled, type View } from "../../charts/view";
import { num, whole } from "../../format";
import { Empty } from "../../parts/empty";
import { Icon } from "../../parts/icon";
import { list, oneOf, useParam } from "../../url";
import { Heads } from "./heads";
import { bestOf, change, lessIsBetter, type Summary, winners } from "./runs";

const PAGE = 200;
const whichCodec = oneOf(["best", "last"], "best");
const turnedCodec = list();
type KeyRow = { key: string; values: Record<string, Summary> };

export function Best({
  named,
  baseline,
  view,
  total,
}: {
  named: readonly Named[];
  baseline: string;
  view: View;
  total: number;
}) {
  const [which, setWhich] = useParam("of", whichCodec);
  const [turned, setTurned] = useParam("best", turnedCodec);
  const [read, setRead] = useState<{ keys: readonly KeyRow[]; total: number } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const ids = named.map(({ id }) => id).join("\n");
  useEffect(() => {
    if (!ids) return;
    const gone = new AbortController();
    const body = { runs: ids.split("\n"), text: view.search, limit: PAGE, values: true };
    post("/api/v1/metrics/search", { body, signal: gone.signal })
      .then((answer) => {
        setRead(answer as { keys: KeyRow[]; total: number });
        setProblem(null);
      })
      .catch((error: unknown) => setProblem(inWords(error)?.what ?? null));
    return () => gone.abort();
  }, [ids, view.search]);
  if (!named.length) return <Empty title="No run is selected">Tick a run in the list to see its metrics.</Empty>;
  return (
    <div class="compare-part">
      <div class="chart-bar">
        <label class="chart-search">
          <Icon name="search" />
          <span class="hidden">Search metrics</span>
          <input
            type="search"
            value={view.search}
            placeholder={`Search ${whole(total)} metrics`}
            onInput={(event) => view.setSearch(event.currentTarget.value)}
          />
        </label>
        <span class="segments">
          {(["best", "last"] as const).map((one) => (
            <button key={one} type="button" aria-pressed={which === one} onClick={() => setWhich(one)}>
              {one === "best" ? "Best" : "Last"}
            </button>
          ))}
        </span>
        {!baseline && <small>Pin a run in the list to compare the others with it.</small>}
      </div>
      {problem && <p class="compare-note">{problem}</p>}
      {read && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keys
        <section class="compare-table" tabIndex={0} aria-label="Metrics">
          <table>
            <Heads named={named} baseline={baseline} first="Metric" />
            <tbody>
              {read.keys.map((row) => (
                <MetricRow
                  key={row.key}
                  row={row}
                  named={named}
                  baseline={baseline}
                  last={which === "last"}
                  less={lessIsBetter(row.key) !== turned.includes(row.key)}
                  turn={() => setTurned(toggled(turned, row.key))}
                />
              ))}
            </tbody>
          </table>
        </section>
      )}
      {read && read.total > PAGE && (
        <p class="compare-note">
          The first {PAGE} of {whole(read.total)} metrics; search for the others.
        </p>
      )}
      {read && !read.keys.length && (
        <Empty title={view.search ? `No metric matches “${view.search}”` : "No metric yet"} />
      )}
    </div>
  );
}

type RowProps = {
  row: KeyRow;
  named: readonly Named[];
  baseline: string;
  last: boolean;
  less: boolean;
  turn: () => void;
};

function MetricRow({ row, named, baseline, last, less, turn }: RowProps) {
  const of = (id: string): number | null => {
    const summary = row.values[id];
    if (!last) return bestOf(summary, less);
    const value = Number(summary?.value ?? Number.NaN);
    return Number.isFinite(value) ? value : null;
  };
  const values = named.map(({ id }) => of(id));
  const best = winners(values, less);
  const base = of(baseline);
  return (
    <tr>
      <th scope="row" class="clip turn" title={row.key}>
        <button
          type="button"
          class="quiet icon"
          title={less ? "Lower is better: click to reverse" : "Higher is better: click to reverse"}
          aria-label={`${row.key}: ${less ? "lower" : "higher"} is better; reverse`}
          onClick={turn}
        >
          <Icon name={less ? "down" : "up"} />
        </button>
        {row.key}
      </th>
      {values.map((value, at) => {
        const one = named[at];
        const summary = one && row.values[one.id];
        const far = one && one.id !== baseline ? change(value, base) : null;
        const good = far && far.by < 0 === less;
        return (
          <td key={one?.id} class={best.has(at) ? "best" : undefined} title={where(summary, last, less)}>
            {value === null && summary ? num(summary.value) : num(value)}
            {far && (
              <small class={good ? "good" : "bad"}>
                {far.by > 0 ? "+" : "−"}
                {far.share === null ? num(Math.abs(far.by), 3) : `${num(Math.abs(far.share * 100), 3)} %`}
              </small>
            )}
          </td>
        );
      })}
    </tr>
  );
}

function where(summary: Summary | undefined, last: boolean, less: boolean): string {
  if (!summary) return "not logged";
  if (last) return `last: ${num(summary.value)}`;
  return `at step ${whole(less ? summary.low_step : summary.high_step)}; last ${num(summary.value)}`;
}
