/** Experiments: named questions, with how their runs went, the best of them, and what one wrote down. */
import { get } from "../../api";
import { ago, num, stamp, whole } from "../../format";
import { Badge } from "../../parts/badge";
import { Empty } from "../../parts/empty";
import { Icon } from "../../parts/icon";
import { NotRead } from "../../parts/sheet/notread";
import { Rows } from "../../parts/sheet/rows";
import { useNow } from "../../parts/stale";
import { useReading } from "../../reading";
import "../../styles/sheet.css";
import { flag, href, oneOf, text, useParam } from "../../url";
import { Note } from "./note";

const METRIC = text("");
const WORDS = text("");
const MODE = oneOf(["", "min", "max"], "");
const ARCHIVED = flag();
const EVERY = 15_000;

export default function ExperimentsPage() {
  const [metric, setMetric] = useParam("metric", METRIC);
  const [mode, setMode] = useParam("mode", MODE);
  const [words, setWords] = useParam("q", WORDS);
  const [archived, setArchived] = useParam("archived", ARCHIVED);
  const now = useNow(30);
  const listed = useReading(
    `experiments ${archived}`,
    (signal) => get("/api/v1/experiments", { query: { archived }, signal }),
    EVERY,
  );
  const groups = useReading(
    `groups ${archived}`,
    (signal) => get("/api/v1/run-groups", { query: { by: "experiment", limit: 2000, archived }, signal }),
    EVERY,
  );
  const best = useReading(
    `best ${metric} ${mode}`,
    (signal) => get("/api/v1/bests", { query: { metric: metric || null, mode: mode || null }, signal }),
    EVERY,
  );
  const keys = useReading("metric words", (signal) =>
    get("/api/v1/filter-words", { query: { prefix: "metrics." }, signal }),
  );
  if (!listed.data) return <NotRead what="The experiments" fault={listed.fault} />;
  const asked = words.trim().toLowerCase();
  const shown = listed.data.experiments.filter(({ name }) => name.toLowerCase().includes(asked));
  const states = new Map(groups.data?.groups.map((group) => [group.value, group]));
  const bests = new Map(best.data?.bests.map((one) => [one.experiment, one]));
  const by = best.data?.metric;
  return (
    <div class="sheet narrow">
      <header class="sheet-head">
        <h1>Experiments</h1>
        <input
          type="search"
          placeholder="Search"
          aria-label="Search experiments"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
        <input
          type="text"
          list="metric-words"
          aria-label="Metric that ranks the runs"
          placeholder={by ? `best ${by}` : "metric"}
          value={metric}
          onChange={(event) => setMetric(event.currentTarget.value.trim().replace(/^metrics\./, ""), { push: true })}
        />
        <datalist id="metric-words">
          {keys.data?.words.map(({ text: word }) => (
            <option key={word} value={word.replace(/^metrics\./, "").replace(/^"(.*)"$/, "$1")} />
          ))}
        </datalist>
        <select
          aria-label="Which values are better"
          value={mode}
          onChange={(event) => setMode(event.currentTarget.value as "" | "min" | "max", { push: true })}
        >
          <option value="">
            {mode === "" && best.data ? (best.data.mode === "min" ? "lowest" : "highest") : "automatic"}
          </option>
          <option value="min">lowest</option>
          <option value="max">highest</option>
        </select>
        <button
          type="button"
          class="quiet"
          aria-pressed={archived}
          onClick={() => setArchived(!archived, { push: true })}
        >
          <Icon name="archive" />
          {archived ? "Archived" : "Active"}
        </button>
      </header>
      <Rows
        columns={[
          "Experiment",
          { name: "Runs", right: true },
          "States",
          { name: <>Best {by && <bdi>{by}</bdi>}</> },
          "Newest run",
          "Notes",
        ]}
        none={
          <Empty
            title={
              asked
                ? "No experiment matches"
                : archived
                  ? "There are no archived experiments"
                  : "There are no experiments yet"
            }
          >
            {!asked && !archived && (
              <>
                Set a run's experiment with <code>experiment: digits</code> in its params file, or with{" "}
                <code>--experiment digits</code>.
              </>
            )}
          </Empty>
        }
      >
        {shown.map((one) => {
          const group = states.get(one.name);
          const top = bests.get(one.id);
          return (
            <tr key={one.id}>
              <th scope="row" class="words">
                <a href={href("/", { q: `experiment = ${quoted(one.name)}` })}>
                  <bdi>{one.name}</bdi>
                </a>
              </th>
              <td class="right" data-word={one.runs === 1 ? "run" : "runs"}>
                {whole(one.runs)}
              </td>
              <td>
                <span class="sheet-counts">
                  {Object.entries(group?.states ?? {}).map(([state, count]) => (
                    <span key={state} class="sheet-count">
                      {count} <Badge state={state} />
                    </span>
                  ))}
                </span>
              </td>
              <td class="words">
                {top ? (
                  <>
                    {num(top.value)}{" "}
                    <a href={href(`/runs/${top.run_id}`)}>
                      <bdi>{top.name || top.run_id}</bdi>
                    </a>
                  </>
                ) : (
                  <span class="muted">–</span>
                )}
              </td>
              <td title={stamp(group?.newest)}>{ago(group?.newest, now)}</td>
              <td class="words">
                <Note id={one.id} name={one.name} text={one.tags["mlflow.note.content"] ?? ""} saved={listed.again} />
              </td>
            </tr>
          );
        })}
      </Rows>
    </div>
  );
}

/** As the filter language takes a text. */
function quoted(name: string): string {
  return name.includes("'") ? `"${name}"` : `'${name}'`;
}
