/** What the benchmarks say: a row a checkpoint or model, a column a benchmark, filled while the pipeline goes on. */
import { Icon } from "../../parts/icon";
import { Sideways } from "../../parts/sideways";
import { flag, text, useParam } from "../../url";
import { about, type Cell, type Column, heat, lacking, type Row, type Summary, sorted } from "./words";

const SORT = text("");
const OF = text("");
const BASELINE = text("");
const ALL = flag(false);
const FIRST = 100; // rows
const WARM = 14; // % of the accent behind the best

export function Scores({ summary, running }: { summary: Summary; running: boolean }) {
  const [sort, setSort] = useParam("sort", SORT);
  const [of] = useParam("of", OF);
  const [all, setAll] = useParam("all", ALL);
  const { columns, rows } = summary;
  const names = [...new Set(rows.map((row) => row.of))];
  const chosen = names.includes(of) ? rows.filter((row) => row.of === of) : rows;
  const found = sorted(
    chosen,
    columns.find(({ benchmark }) => benchmark === sort),
  );
  const shown = all ? found : found.slice(0, FIRST);
  return (
    <section aria-labelledby="table">
      <div class="sheet-head">
        <h2 id="table">Benchmarks</h2>
        {rows.length > 0 && <Choices names={names} baseline={summary.baseline} />}
      </div>
      {rows.length ? (
        <Sideways label="Benchmark scores">
          <table class="scores">
            <Heads columns={columns} sort={sort} setSort={(to) => setSort(to, { push: true })} />
            <Body rows={shown} among={chosen} columns={columns} />
          </table>
        </Sideways>
      ) : (
        <p class="muted">
          {running ? "No scores yet: the first checkpoint adds the first row." : "No checkpoint was scored."}
        </p>
      )}
      {shown.length < found.length && (
        <button type="button" class="quiet" onClick={() => setAll(true)}>
          All {found.length} rows
        </button>
      )}
      {summary.rows.length < summary.rows_all && (
        <p class="muted">
          {summary.rows_all} rows in total; <code>onward pipeline summary</code> prints them all.
        </p>
      )}
      <ul class="notes">
        {rows.length > 1 && <li>darker cells are better within their column</li>}
        {rows.length > 0 && summary.notes.map((note) => <li key={note}>{note.replace(/^\* is/, "★ is")}</li>)}
      </ul>
    </section>
  );
}

function Choices({ names, baseline }: { names: readonly string[]; baseline: string | null }) {
  const [of, setOf] = useParam("of", OF);
  const [against, setAgainst] = useParam("baseline", BASELINE);
  return (
    <>
      {names.length > 1 && (
        <label class="choice">
          Show{" "}
          <select value={of} onChange={(event) => setOf(event.currentTarget.value, { push: true })}>
            <option value="">all</option>
            {names.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      <label class="choice">
        Compare with{" "}
        <select value={against} onChange={(event) => setAgainst(event.currentTarget.value, { push: true })}>
          <option value="">{against || !baseline ? "baseline from the file" : `${baseline} (from the file)`}</option>
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
    </>
  );
}

type HeadsProps = { columns: readonly Column[]; sort: string; setSort: (to: string) => void };

function Heads({ columns, sort, setSort }: HeadsProps) {
  return (
    <thead>
      <tr>
        <th scope="col">Checkpoint</th>
        {columns.map(({ benchmark, metric, better }) => {
          const on = sort === benchmark;
          const order = better === "min" ? "ascending" : "descending";
          return (
            <th key={benchmark} scope="col" class="right" aria-sort={on ? order : undefined}>
              <button
                type="button"
                class="quiet"
                title={on ? "Sort by step" : "Sort by this column, best first"}
                onClick={() => setSort(on ? "" : benchmark)}
              >
                <bdi>{benchmark}</bdi>
                {on && <Icon name={better === "min" ? "up" : "down"} />}
              </button>
              <small>
                {metric === "score" ? "" : <bdi>{metric}, </bdi>}
                {better === "min" ? "lower is better" : "higher is better"}
              </small>
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

type BodyProps = { rows: readonly Row[]; among: readonly Row[]; columns: readonly Column[] };

function Body({ rows, among, columns }: BodyProps) {
  const warm = new Map(columns.map((column) => [column.benchmark, heat(among, column)]));
  return (
    <tbody>
      {rows.map((row) => (
        <tr key={row.key}>
          <th scope="row">
            <bdi>{row.label}</bdi>
            {row.baseline && <small>baseline</small>}
          </th>
          {columns.map((column) => {
            const cell = row.cells[column.benchmark];
            return cell ? (
              <Score
                key={column.benchmark}
                cell={cell}
                column={column}
                warm={warm.get(column.benchmark)?.get(row.key) ?? 0}
              />
            ) : (
              <td key={column.benchmark} />
            );
          })}
        </tr>
      ))}
    </tbody>
  );
}

function Score({ cell, column, warm }: { cell: Cell; column: Column; warm: number }) {
  const none = lacking(cell);
  const part = cell.tasks > cell.done ? `${cell.done} of ${cell.tasks} tasks` : "";
  return (
    <td
      class={cell.best ? "right best" : "right"}
      title={about(cell, column)}
      style={warm ? { "--warm": `${Math.round(warm * WARM)}%` } : {}}
    >
      {cell.text ? (
        <span class="score">
          {cell.best && (
            <>
              <span aria-hidden="true">★ </span>
              <span class="hidden">best: </span>
            </>
          )}
          {cell.text}
          {cell.against && (
            <>
              <span aria-hidden="true" class={cell.against === "better" ? "good" : "bad"}>
                {cell.against === "better" ? " ↑" : " ↓"}
              </span>
              <span class="hidden">, {cell.against} than the baseline</span>
            </>
          )}
        </span>
      ) : (
        <span class={none.style}>
          {cell.failed > 0 && <span aria-hidden="true">✕ </span>}
          {none.words}
        </span>
      )}
      {(part || (cell.failed > 0 && cell.text)) && (
        <small>
          {part}
          {cell.failed > 0 && cell.text && <span class="bad">, ✕ {cell.failed} failed</span>}
        </small>
      )}
    </td>
  );
}
