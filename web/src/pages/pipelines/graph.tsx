/** The stages as cards with lines between them; on narrow screens one under the other, each saying what it comes after. */
import { percent, whole } from "../../format";
import { Badge } from "../../parts/badge";
import { Progress } from "../../parts/progress";
import { Sideways } from "../../parts/sideways";
import { href, text, useParam } from "../../url";
import { Counts } from "./counts";
import { graph, type Node } from "./layers";
import { badge, counted, type Details, fraction, type Stage, tasks, together } from "./words";

const WIDTH = 232;
const HEIGHT = 88;
const ACROSS = 40;
const DOWN = 12;
const OPEN = text("");

export function Stages({ told }: { told: Details }) {
  const [open, setOpen] = useParam("stages", OPEN);
  const { nodes, edges, columns, rows } = graph(told);
  if (!nodes.length) return null;
  const size = { width: columns * (WIDTH + ACROSS) - ACROSS, height: rows * (HEIGHT + DOWN) - DOWN };
  const shown = nodes.find(({ id, stages }) => id === open && stages.length > 1);
  return (
    <section aria-labelledby="stages">
      <h2 id="stages">Stages</h2>
      <Sideways label="Stage graph">
        <div class="graph" style={{ "--wide": `${size.width}px`, "--tall": `${size.height}px` }}>
          <svg viewBox={`0 0 ${size.width} ${size.height}`} {...size} aria-hidden="true">
            {edges.map(([from, to]) => (
              <path key={`${from.id} ${to.id}`} d={line(from, to)} />
            ))}
          </svg>
          <ol>
            {nodes.map((node) => (
              <li key={node.id} style={{ left: `${left(node)}px`, top: `${top(node)}px` }}>
                {node.after.length > 0 && <small class="after">after {node.after.join(", ")}</small>}
                {node.stages.length > 1 ? (
                  <Sweep
                    node={node}
                    open={node === shown}
                    toggle={() => setOpen(node === shown ? "" : node.id, { push: true })}
                  />
                ) : node.stages[0] ? (
                  <Card stage={node.stages[0]} />
                ) : (
                  <Benchmarks told={told} />
                )}
              </li>
            ))}
          </ol>
        </div>
      </Sideways>
      {shown && <Points stages={shown.stages} />}
    </section>
  );
}

function left({ column }: Node): number {
  return column * (WIDTH + ACROSS);
}

function top({ row }: Node): number {
  return row * (HEIGHT + DOWN);
}

function line(from: Node, to: Node): string {
  const [x1, y1] = [left(from) + WIDTH, top(from) + HEIGHT / 2];
  const [x2, y2] = [left(to), top(to) + HEIGHT / 2];
  return `M${x1} ${y1}C${x1 + ACROSS / 2} ${y1} ${x2 - ACROSS / 2} ${y2} ${x2} ${y2}`;
}

function Name({ stage }: { stage: Stage }) {
  const run = stage.run ?? stage.done_by;
  const name = <bdi>{stage.label}</bdi>;
  return run ? <a href={href(`/runs/${run}`)}>{name}</a> : <span>{name}</span>;
}

/** How far it is, where it says so. */
function Why({ stage }: { stage: Stage }) {
  const { progress } = stage;
  if (progress?.step != null && progress.total)
    return (
      <Progress
        fraction={progress.step / progress.total}
        label={`step ${whole(progress.step)} of ${whole(progress.total)}, ${percent(progress.step / progress.total)}`}
        state="running"
      />
    );
  const words = progress?.step != null ? `step ${whole(progress.step)}; ${stage.why}` : stage.why;
  return (
    <p class="why" title={words}>
      {words}
    </p>
  );
}

function Card({ stage }: { stage: Stage }) {
  const { state, word } = badge(stage);
  return (
    <div class={`stage-card ${stage.skipped ? "skipped" : state}`}>
      <div class="stage-top">
        <Name stage={stage} />
        <Badge state={state} word={word} />
      </div>
      <Why stage={stage} />
    </div>
  );
}

function Sweep({ node, open, toggle }: { node: Node; open: boolean; toggle: () => void }) {
  const { state, word } = together(node.stages);
  return (
    <div class={`stage-card ${state}`}>
      <div class="stage-top">
        <button type="button" class="link" aria-expanded={open} onClick={toggle}>
          <bdi>{node.id}</bdi> × {node.stages.length}
        </button>
        <Badge state={state} word={word} />
      </div>
      <p class="why">{counted(node.stages)}</p>
    </div>
  );
}

function Benchmarks({ told }: { told: Details }) {
  const { done, failed, claimed, open } = told.tasks;
  const all = done + failed + claimed + open;
  const going = claimed > 0 || told.workers_live > 0;
  const state = failed ? "failed" : going ? "running" : all && done === all ? "finished" : "submitted";
  const word = { failed: "some failed", running: "running", finished: "done", submitted: "pending" }[state];
  return (
    <div class={`stage-card ${state}`}>
      <div class="stage-top">
        <a href="#table" data-native>
          {told.benchmarks.length === 1 ? "1 benchmark" : `${told.benchmarks.length} benchmarks`}
        </a>
        <Badge state={state} word={word} />
      </div>
      <Progress fraction={fraction(told.tasks)} label={all ? tasks(told.tasks) : "no checkpoint yet"} state={state} />
      {all > 0 && (
        <p class="why one">
          <Counts counts={told.tasks} />
        </p>
      )}
    </div>
  );
}

/** Each point of a sweep. */
function Points({ stages }: { stages: readonly Stage[] }) {
  return (
    <div class="sheet-scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Stage</th>
            <th scope="col">State</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {stages.map((stage) => (
            <tr key={stage.name}>
              <th scope="row" class="words">
                <Name stage={stage} />
              </th>
              <td>
                <Badge {...badge(stage)} />
              </td>
              <td class="words">
                <Why stage={stage} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
