/** The list of pipelines: newest first, each with how far its stages and tasks are, and why it ended. */
import { useState } from "preact/hooks";
import { get } from "../../api";
import { ago, stamp } from "../../format";
import { useKeys } from "../../keys";
import { Badge } from "../../parts/badge";
import { Empty } from "../../parts/empty";
import { Progress } from "../../parts/progress";
import { useNow } from "../../parts/stale";
import { useReading } from "../../reading";
import "../../styles/sheet.css";
import "./pipelines.css";
import { href, text, useParam } from "../../url";
import { Counts } from "./counts";
import { fraction, type Line, tasks, took } from "./words";

const WORDS = text("");
const PAGE = 50;
const MOST = 200;
const EVERY = 3000;

export function List() {
  const [words, setWords] = useParam("q", WORDS);
  const [limit, setLimit] = useState(PAGE);
  const { data, fault } = useReading(
    `pipelines ${words} ${limit}`,
    (signal) => get("/api/v1/pipelines", { query: { text: words || null, limit }, signal }),
    EVERY,
  );
  useKeys("Pipelines", [
    {
      keys: "/",
      does: "Search",
      act: () => document.querySelector<HTMLInputElement>(".sheet input[type=search]")?.focus(),
    },
  ]);
  if (!data && fault)
    return (
      <Empty title="The pipelines could not be loaded">
        {fault.what}. {fault.next}
      </Empty>
    );
  if (data && !words && !data.pipelines.length && !data.problems.length) return <None />;
  return (
    <div class="sheet narrow pipelines">
      <header class="sheet-head">
        <h1>Pipelines</h1>
        <input
          type="search"
          placeholder="Search"
          aria-label="Search pipelines"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      </header>
      {data?.problems.map((problem) => (
        <p key={problem} class="bad words">
          {problem}
        </p>
      ))}
      {!data ? (
        <p class="empty" role="status">
          Loading …
        </p>
      ) : data.pipelines.length ? (
        <Rows lines={data.pipelines} />
      ) : (
        <Empty title="No pipeline matches" />
      )}
      {data?.next &&
        (limit < MOST ? (
          <button type="button" class="quiet" onClick={() => setLimit(Math.min(MOST, limit + PAGE))}>
            Show older
          </button>
        ) : (
          <p class="muted">To find older ones, search for part of the name or the day.</p>
        ))}
    </div>
  );
}

function Rows({ lines }: { lines: readonly Line[] }) {
  const now = useNow(1);
  return (
    <div class="sheet-scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Pipeline</th>
            <th scope="col">State</th>
            <th scope="col">Stages</th>
            <th scope="col">Tasks</th>
            <th scope="col">Created</th>
            <th scope="col">Took</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.id}>
              <th scope="row" class="words">
                <a href={href(`/pipelines/${encodeURIComponent(line.id)}`)}>
                  <bdi>{line.name}</bdi>
                </a>
                <small>
                  <bdi>{line.id}</bdi> · {line.cluster}
                </small>
              </th>
              <td class="words state">
                <Badge state={line.state} />
                {line.cause && <small title={line.cause}>{line.cause}</small>}
              </td>
              <td data-word="stages">
                {line.stages_done} of {line.stages_all}
              </td>
              <td class="tasks">
                <Progress fraction={fraction(line.tasks)} label={tasks(line.tasks)} state={line.state} />
                <small>{fraction(line.tasks) !== null && <Counts counts={line.tasks} />}</small>
              </td>
              <td title={stamp(line.created)}>{ago(line.created, now)}</td>
              <td class="took">{took(line, now)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function None() {
  return (
    <Empty title="There are no pipelines yet">
      A pipeline is a file with stages, environments, a training, and benchmarks of its checkpoints. This page shows the
      progress of each part, what failed and why, and a table of scores that fills in while the training runs.{" "}
      <code>onward pipeline run FILE</code> starts one. Single runs are in <a href={href("/")}>the run list</a>.
    </Empty>
  );
}
