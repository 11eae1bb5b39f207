/** One line of the list: a run, or the head of a group; as a row of cells, or as a card where the screen is narrow. */
import type { Signal } from "@preact/signals";
import { Component } from "preact";
import { whole } from "../../format";
import { Icon } from "../../parts/icon";
import type { TableColumn } from "../../parts/table";
import { go, href } from "../../url";
import { Cell } from "./cells";
import { PipelineCard, PipelineLine } from "./pipeline";
import type { Line, Part, Row } from "./rows";

type Props = {
  line: Line | null;
  number: number;
  columns: readonly TableColumn[];
  curve: string;
  cards: boolean;
  selected: Signal<ReadonlySet<string>>;
  group: string;
  toggle: (line: Line) => void;
  select: (id: string, many: boolean) => void;
};

/** Drawn anew only when what it shows has changed: while one scrolls, most lines have not. */
export class RunLine extends Component<Props> {
  override shouldComponentUpdate(next: Props): boolean {
    const { line, columns, curve, cards, group } = this.props;
    const other = columns !== next.columns || curve !== next.curve || cards !== next.cards || group !== next.group;
    if (other || line?.kind !== "run" || next.line?.kind !== "run") return true;
    return line.row !== next.line.row || line.row === null || line.part.within !== next.line.part.within;
  }

  override render() {
    const { line, number, columns, cards, group, toggle } = this.props;
    if (line?.kind === "group")
      return <GroupLine part={line.part} group={group} toggle={() => toggle(line)} number={number} />;
    if (line?.kind === "pipeline") {
      const given = { line, number, toggle: () => toggle(line) };
      return cards ? <PipelineCard {...given} /> : <PipelineLine {...given} columns={columns} />;
    }
    const row = line?.row ?? null;
    if (!row) return <div class="table-row waiting" role="row" aria-rowindex={number + 2} aria-busy="true" />;
    return cards ? <Card {...this.props} row={row} /> : <CellRow {...this.props} row={row} />;
  }
}

type WithRow = Props & { row: Row };

function Tick({ row, selected, select }: WithRow) {
  return (
    <input
      type="checkbox"
      tabIndex={-1}
      aria-label={`Select ${row.name || row.id}`}
      checked={selected.value.has(row.id)}
      onClick={(event) => select(row.id, event.shiftKey)}
    />
  );
}

function CellRow(props: WithRow) {
  const { row, line, number, columns, curve, selected } = props;
  const on = selected.value.has(row.id);
  const within = line?.kind === "run" && line.part.within;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter opens the run; see the list's keys
    <div
      class={["table-row", on && "on", within && "within"].filter(Boolean).join(" ")}
      role="row"
      tabIndex={-1}
      aria-rowindex={number + 2}
      aria-selected={on}
      onClick={(event) => {
        const clicked = event.target instanceof Element && event.target.closest("a, input, button");
        if (!clicked && !window.getSelection()?.toString()) go(href(`/runs/${encodeURIComponent(row.id)}`));
      }}
    >
      <div class="cell lead" role="gridcell">
        <Tick {...props} />
      </div>
      {columns.map(({ id, right }) => (
        <div key={id} class={right ? "cell right" : "cell"} role="gridcell">
          <Cell id={id} row={row} spark={curve} />
        </div>
      ))}
    </div>
  );
}

function Card(props: WithRow) {
  const { row, line, number, selected, curve } = props;
  const on = selected.value.has(row.id);
  const within = line?.kind === "run" && line.part.within;
  return (
    <div
      class={["card", on && "on", within && "within"].filter(Boolean).join(" ")}
      role="row"
      tabIndex={-1}
      aria-rowindex={number + 2}
      aria-selected={on}
    >
      <div class="card-tick" role="gridcell">
        <Tick {...props} />
      </div>
      <div class="card-what" role="gridcell">
        <div class="card-top">
          <Cell id="name" row={row} spark="" />
          <Cell id="state" row={row} spark="" />
        </div>
        <div class="card-why">
          <Cell id="why" row={row} spark="" />
        </div>
        <div class="card-far">
          <Cell id="progress" row={row} spark="" />
          <Cell id="spark" row={row} spark={curve} />
          <span class="muted">
            <Cell id="created" row={row} spark="" />
          </span>
        </div>
      </div>
    </div>
  );
}

function GroupLine({ part, group, toggle, number }: { part: Part; group: string; toggle: () => void; number: number }) {
  const name = group.replace(/^(params|tags)\./, "");
  return (
    <div class="group" role="row" aria-rowindex={number + 2}>
      <div role="gridcell">
        <button type="button" class="quiet" tabIndex={-1} aria-expanded={part.open} onClick={toggle}>
          <Icon name={part.open ? "down" : "right"} />
          <span class="muted">{name}</span>
          <bdi class="clip">{part.value ?? "none"}</bdi>
          <span class="count">{whole(part.count)}</span>
          <span class="group-states">
            {Object.entries(part.states).map(([state, runs]) => (
              <span key={state} class={`state ${state}`}>
                {runs} {state}
              </span>
            ))}
          </span>
        </button>
      </div>
    </div>
  );
}
