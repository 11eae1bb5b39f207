/** A chart as a table, for those who cannot see it and for those who want the numbers. */
import { num } from "../format";
import { type Axis, axisName, type Window } from "./axis";
import type { Named } from "./chart";
import type { Drawn } from "./curve";
import { nearest } from "./read";
import { placeOf } from "./tip";

const ROWS = 200;

/** At which places a table reads: those of all curves in the window, or evenly some of them. Pure. */
export function rowsOf(curves: readonly Drawn[], window: Window | null, most = ROWS): number[] {
  const places = new Set<number>();
  for (const { xs } of curves)
    for (const x of xs) if (Number.isFinite(x) && (!window || (x >= window[0] && x <= window[1]))) places.add(x);
  const all = [...places].sort((one, other) => one - other);
  if (all.length <= most) return all;
  return Array.from({ length: most }, (_, at) => all[Math.round((at * (all.length - 1)) / (most - 1))] as number);
}

type Props = { curves: readonly Drawn[]; named: readonly Named[]; axis: Axis; window: Window | null; height: number };

export function DataTable({ curves, named, axis, window, height }: Props) {
  const rows = rowsOf(curves, window);
  const names = new Map(named.map(({ id, name }) => [id, name]));
  const reach = rows.length > 1 ? ((rows.at(-1) as number) - (rows[0] as number)) / rows.length : 0;
  const shown = curves.filter(({ id }) => names.has(id));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keys
    <section class="chart-table" tabIndex={0} aria-label="Values" style={{ height: `${height}px` }}>
      <table>
        <thead>
          <tr>
            <th scope="col">{axisName(axis)}</th>
            {shown.map(({ id }) => (
              <th key={id} scope="col" class="clip">
                {names.get(id)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((x) => (
            <tr key={x}>
              <th scope="row">{placeOf(x, axis)}</th>
              {shown.map((curve) => {
                const at = nearest(curve, x, reach);
                return <td key={curve.id}>{at < 0 ? "" : num(curve.mids[at])}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
