/** The list of runs: what each is doing and why, how far it is, and what can be done with it. */
import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useKeys } from "../../keys";
import { Empty } from "../../parts/empty";
import { Icon } from "../../parts/icon";
import { AsOf } from "../../parts/stale";
import { Table, type TableColumn } from "../../parts/table";
import { flag, go, href, list, text, useParam } from "../../url";
import { Bulk } from "./bulk";
import { CurveMenu, GroupMenu } from "./choosers";
import { ColumnMenu, moved } from "./columnmenu";
import { bounded, type Chosen, chosenColumns, columnOf, metricsOf, orderOf, sortCodec } from "./columns";
import { useRows } from "./feed";
import { FilterBox } from "./filterbox";
import { RunLine } from "./line";
import { NoRuns } from "./none";
import type { Line, Rows } from "./rows";
import "./runs.css";
import { States } from "./states";
import { all } from "./terms";
import { Unreadable } from "./unreadable";
import { Views } from "./views";
import { type Room, useKnownKeys } from "./words";

const FILTER = text("");
const GROUP = text("");
const STATE = text("");
const CURVE = text("");
const OPENED = list();
const ARCHIVED = flag();
const FOLD = flag(true);
const METRICS: readonly Room[] = ["metrics"];
const ROW = 32;
const CARD = 76;
const NARROW = window.matchMedia("(max-width: 700px)");

/** Stays while other pages are looked at, as does the place that was scrolled to. */
const selected = signal<ReadonlySet<string>>(new Set());
const places = new Map<string, { top: number }>();

export default function RunsPage() {
  const [filter, setFilter] = useParam("q", FILTER);
  const [sort, setSort] = useParam("sort", sortCodec);
  const [columns, setColumns] = useParam("cols", chosenColumns);
  const [group, setGroup] = useParam("group", GROUP);
  const [state, setState] = useParam("state", STATE);
  const [curve, setCurve] = useParam("curve", CURVE);
  const [opened, setOpened] = useParam("open", OPENED);
  const [archived, setArchived] = useParam("archived", ARCHIVED);
  const [fold, setFold] = useParam("fold", FOLD);
  const cards = useNarrow();
  const drawn = useCurve(curve);
  const whole = !filter && !group && !state && !archived && sort.id === "created"; // else single runs are looked for
  const order = orderOf(sort);
  const query = { filter, order, group, state, archived, metrics: metricsOf(columns), fold: fold && whole };
  const { rows, reload, changed } = useRows(query, new Set(opened));
  const [current, setCurrent] = useState(-1);
  const version = rows?.version.value ?? 0;
  const place = useMemo(() => placeOf(JSON.stringify(query)), [filter, sort, group, state, archived, fold]);
  const inView = useMemo(() => (first: number, last: number) => rows?.want(first, last), [rows, version]);

  const toggle = (line: Line) => {
    rows?.toggle(line);
    setOpened(rows?.openKeys() ?? []);
  };
  useListKeys({ rows, current, setCurrent, toggle });
  const shown = useMemo(() => columns.map(inTable), [columns]);
  return (
    <div class="runs">
      <h1 class="hidden">Runs</h1>
      <div class="runs-tools">
        <FilterBox
          value={filter}
          set={setFilter}
          wrong={rows?.fault.value ?? null}
          note={filter ? (rows?.note ?? "") : ""}
        />
        <div class="runs-menus">
          <GroupMenu value={group} set={(to) => setGroup(to, { push: true })} />
          <CurveMenu value={drawn} set={(to) => setCurve(to || "-")} />
          <ColumnMenu chosen={columns} set={setColumns} />
          <Views filter={rows?.readAs === "text" ? "" : all([filter, state && `state = ${state}`])} />
        </div>
      </div>
      <div class="runs-bar">
        {selected.value.size > 0 && rows ? (
          <Bulk
            selected={selected.value}
            rows={rows}
            archived={archived}
            clear={() => (selected.value = new Set())}
            changed={changed}
          />
        ) : (
          <States
            states={rows?.states ?? {}}
            state={state}
            set={(to) => setState(to, { push: true })}
            archived={archived}
            setArchived={(to) => setArchived(to, { push: true })}
            fold={whole && rows?.pipelines ? fold : null}
            setFold={(to) => setFold(to, { push: true })}
          />
        )}
        <span class="runs-age">
          <AsOf time={rows?.readAt.value ?? null} after={90} />
          {(rows?.fresh.value ?? 0) > 0 && (
            <button type="button" class="fresh" onClick={reload}>
              <Icon name="up" />
              {rows?.fresh.value === 1 ? "1 new run" : `${rows?.fresh.value} new runs`}
            </button>
          )}
        </span>
      </div>
      <Unreadable />
      {rows && rows.lines > 0 && (
        <Table
          label="Runs"
          columns={shown}
          leadWidth={cards ? 0 : 36}
          lead={<All rows={rows} />}
          lines={rows.lines}
          height={cards ? CARD : ROW}
          sort={sort}
          current={current}
          cards={cards}
          place={place}
          inView={inView}
          onSort={(id) =>
            setSort({ id, down: sort.id === id ? !sort.down : (columnOf(id)?.down ?? false) }, { push: true })
          }
          onMove={(id, by) => setColumns(moved(columns, id, by))}
          onSize={(id, width) =>
            setColumns(columns.map((one) => (one.id === id ? { id, width: bounded(width) } : one)))
          }
          line={(number) => (
            <RunLine
              line={rows.line(number)}
              number={number}
              columns={shown}
              curve={drawn}
              cards={cards}
              selected={selected}
              group={group}
              toggle={toggle}
              select={(id, many) => select(rows, id, number, many)}
            />
          )}
        />
      )}
      {rows && rows.lines === 0 && !rows.fault.value && (
        <NoRuns filter={filter} state={state} archived={archived} reset={() => go(href("/"))} />
      )}
      {rows?.lines === 0 && rows.fault.value && !filter && (
        <Empty title={rows.fault.value.what}>{rows.fault.value.next}</Empty>
      )}
    </div>
  );
}

function inTable({ id, width }: Chosen): TableColumn {
  const { title = id, right = false, order, about = "" } = columnOf(id) ?? {};
  return {
    id,
    title,
    width,
    right,
    about,
    sortable: order !== undefined,
    grows: id === "why" && width === columnOf(id)?.width,
  };
}

function placeOf(key: string): { top: number } {
  const place = places.get(key) ?? { top: 0 };
  places.set(key, place);
  return place;
}

let lastSelected = -1;

/** One more or one less; with `many`, all from the last one on. */
function select(rows: Rows, id: string, number: number, many: boolean): void {
  const next = new Set(selected.peek());
  const on = !next.has(id);
  const from = many && lastSelected >= 0 ? Math.min(lastSelected, number) : number;
  const to = many && lastSelected >= 0 ? Math.max(lastSelected, number) : number;
  for (let at = from; at <= to; at++) {
    const line = rows.line(at);
    if (line?.kind === "run" && line.row) on ? next.add(line.row.id) : next.delete(line.row.id);
  }
  lastSelected = number;
  selected.value = next;
}

function All({ rows }: { rows: Rows }) {
  const ids = rows.ids();
  const all = ids.length > 0 && ids.every((id) => selected.value.has(id));
  return (
    <input
      type="checkbox"
      aria-label={all ? "Clear selection" : "Select all loaded runs"}
      checked={all}
      onChange={() => (selected.value = new Set(all ? [] : ids))}
    />
  );
}

type ListKeys = {
  rows: Rows | null;
  current: number;
  setCurrent: (number: number) => void;
  toggle: (line: Line) => void;
};

function useListKeys({ rows, current, setCurrent, toggle }: ListKeys): void {
  const line = rows && current >= 0 ? rows.line(current) : null;
  const most = (rows?.lines ?? 0) - 1;
  const to = (number: number) => setCurrent(Math.max(0, Math.min(most, number)));
  const open = () => {
    if (line?.kind === "group" || line?.kind === "pipeline") toggle(line);
    else if (line?.row) go(href(`/runs/${encodeURIComponent(line.row.id)}`));
  };
  useKeys("Runs", [
    { keys: ["j", "ArrowDown"], does: "Next run", act: () => to(current + 1) },
    { keys: ["k", "ArrowUp"], does: "Previous run", act: () => to(current - 1) },
    { keys: "PageDown", does: "Page down", act: () => to(current + 20) },
    { keys: "PageUp", does: "Page up", act: () => to(current - 20) },
    { keys: "Home", does: "First run", act: () => to(0) },
    { keys: ["End", "G"], does: "Last run", act: () => to(most) },
    { keys: ["Enter", "o"], does: "Open the run, group or pipeline", act: open },
    {
      keys: ["x", " "],
      does: "Select the run",
      act: () => line?.kind === "run" && line.row && rows && select(rows, line.row.id, current, false),
    },
    {
      keys: "X",
      does: "Select a range from the last selected run",
      act: () => line?.kind === "run" && line.row && rows && select(rows, line.row.id, current, true),
    },
    {
      keys: "l",
      does: "Open its logs",
      act: () => line?.kind === "run" && line.row && go(href(`/runs/${encodeURIComponent(line.row.id)}/logs`)),
    },
  ]);
}

function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const look = () => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", look);
    return () => NARROW.removeEventListener("change", look);
  }, []);
  return narrow;
}

/** The metric that was chosen; where none was, a loss if there is one. */
function useCurve(chosen: string): string {
  const known = useKnownKeys("", METRICS);
  if (chosen === "-") return "";
  const names = known.map((key) => key.replace("metrics.", ""));
  return chosen || (names.find((name) => /(^|[/_.])loss$/i.test(name)) ?? names[0] ?? "loss");
}
