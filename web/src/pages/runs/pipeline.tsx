/** The line of a pipeline in the list: how it stands, and how many of its runs are in each state; its runs open below it. */
import { whole } from "../../format";
import { Badge } from "../../parts/badge";
import { Icon } from "../../parts/icon";
import { Progress } from "../../parts/progress";
import type { TableColumn } from "../../parts/table";
import { href } from "../../url";
import { Cell } from "./cells";
import type { Line } from "./rows";

type Props = { line: Line & { kind: "pipeline" }; number: number; toggle: () => void };

const ORDER = ["failed", "running", "waiting", "submitted", "cancelled", "finished"];
const SAME = new Set(["created", "experiment", "user", "cluster"]); // as its newest run has it

/** The worst that its runs say, for as long as its own folder has not been read. */
export function stateBy(states: Readonly<Record<string, number>>): string {
  if (states.running || states.waiting || states.submitted) return "running";
  return ["failed", "cancelled"].find((state) => states[state]) ?? "finished";
}

/** `moons`, of the folder 2026-11-15_D_moons. */
export function nameOf(id: string): string {
  return id.replace(/^\d{4}-\d\d-\d\d_[A-Z]+_/, "");
}

export function PipelineLine({ line, number, columns, toggle }: Props & { columns: readonly TableColumn[] }) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter opens it; see the list's keys
    <div
      class="table-row pipeline"
      role="row"
      tabIndex={-1}
      aria-rowindex={number + 2}
      onClick={(event) => {
        const clicked = event.target instanceof Element && event.target.closest("a, button");
        if (!clicked && !window.getSelection()?.toString()) toggle();
      }}
    >
      <div class="cell lead" role="gridcell">
        <Opener line={line} toggle={toggle} />
      </div>
      {columns.map(({ id, right }) => (
        <div key={id} class={right ? "cell right" : "cell"} role="gridcell">
          <PipelineCell id={id} line={line} />
        </div>
      ))}
    </div>
  );
}

export function PipelineCard({ line, number, toggle }: Props) {
  return (
    <div class="card pipeline" role="row" tabIndex={-1} aria-rowindex={number + 2}>
      <div class="card-tick" role="gridcell">
        <Opener line={line} toggle={toggle} />
      </div>
      <div class="card-what" role="gridcell">
        <div class="card-top">
          <PipelineCell id="name" line={line} />
          <PipelineCell id="state" line={line} />
        </div>
        <div class="card-why">
          <PipelineCell id="why" line={line} />
        </div>
        <div class="card-far">
          <PipelineCell id="progress" line={line} />
          <span class="muted">
            <Cell id="created" row={line.row} spark="" />
          </span>
        </div>
      </div>
    </div>
  );
}

function Opener({ line, toggle }: Omit<Props, "number">) {
  const name = `Runs of ${nameOf(line.pipeline.id)}`;
  return (
    <button
      type="button"
      class="quiet opener"
      tabIndex={-1}
      aria-label={name}
      aria-expanded={line.open}
      onClick={toggle}
    >
      <Icon name={line.open ? "down" : "right"} />
    </button>
  );
}

function PipelineCell({ id, line }: { id: string } & Pick<Props, "line">) {
  const { own, states, pipeline, row } = line;
  switch (id) {
    case "name": {
      const name = <bdi>{nameOf(pipeline.id)}</bdi>;
      return (
        <span class="clip pipeline-name" title={`Pipeline ${pipeline.id}`}>
          {own ? (
            <a href={href(`/pipelines/${encodeURIComponent(pipeline.id)}`)} tabIndex={-1}>
              {name}
            </a>
          ) : (
            name
          )}{" "}
          <span class="muted">pipeline</span>
        </span>
      );
    }
    case "state":
      return <Badge state={own?.state ?? stateBy(states)} title={own?.cause || undefined} />;
    case "why":
      return <Why line={line} />;
    case "progress":
      return own?.stages_all ? (
        <Progress
          fraction={own.stages_done / own.stages_all}
          state={own.state}
          label={`${own.stages_done} of ${own.stages_all} stages finished`}
        />
      ) : null;
    default:
      return SAME.has(id) ? <Cell id={id} row={row} spark="" /> : null;
  }
}

function Why({ line: { own, states } }: Pick<Props, "line">) {
  const told = ORDER.filter((state) => states[state]);
  const all = told.reduce((sum, state) => sum + (states[state] ?? 0), 0);
  const words = told.map((state) => `${whole(states[state] ?? 0)} ${state}`).join(", ");
  return (
    <span class="clip muted" title={[own?.cause, `${whole(all)} runs: ${words}`].filter(Boolean).join("\n")}>
      {told.map((state, at) => (
        <span key={state} class={`run-state ${state}`}>
          {whole(states[state] ?? 0)} {state}
          {at < told.length - 1 && ", "}
        </span>
      ))}
      {own?.cause && <bdi> · {own.cause}</bdi>}
    </span>
  );
}
