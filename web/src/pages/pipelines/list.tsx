/** The list of pipelines: newest first, each with how far its stages and tasks are, and why it ended. */
import { useState } from "preact/hooks";
import { get } from "../../api";
import { ago, stamp } from "../../format";
import { Badge } from "../../parts/badge";
import { Empty } from "../../parts/empty";
import { Progress } from "../../parts/progress";
import { ListPage, Older } from "../../parts/sheet/list";
import { Rows } from "../../parts/sheet/rows";
import { useNow } from "../../parts/stale";
import { useReading } from "../../reading";
import "./pipelines.css";
import { href, text, useParam } from "../../url";
import { Counts } from "./counts";
import { fraction, type Line, tasks, took } from "./words";

const WORDS = text("");
const PAGE = 50;
const MOST = 200;
const EVERY = 3000;
const COLUMNS = ["Pipeline", "State", "Stages", "Tasks", "Created", "Took"];

export function List() {
  const [words, setWords] = useParam("q", WORDS);
  const [limit, setLimit] = useState(PAGE);
  const now = useNow(1);
  const reading = useReading(
    `pipelines ${words} ${limit}`,
    (signal) => get("/api/v1/pipelines", { query: { text: words || null, limit }, signal }),
    EVERY,
  );
  const { data } = reading;
  if (data && !words && !data.pipelines.length && !data.problems.length) return <None />;
  return (
    <ListPage title="Pipelines" reading={reading} words={words} search={setWords}>
      {({ pipelines, problems, next }) => (
        <>
          {problems.map((problem) => (
            <p key={problem} class="bad words">
              {problem}
            </p>
          ))}
          <Rows columns={COLUMNS} none={<Empty title="No pipeline matches" />}>
            {pipelines.map((line) => (
              <Row key={line.id} line={line} now={now} />
            ))}
          </Rows>
          {next &&
            (limit < MOST ? (
              <Older show={() => setLimit(Math.min(MOST, limit + PAGE))} />
            ) : (
              <p class="muted">To find older ones, search for part of the name or the day.</p>
            ))}
        </>
      )}
    </ListPage>
  );
}

function Row({ line, now }: { line: Line; now: number }) {
  return (
    <tr>
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
