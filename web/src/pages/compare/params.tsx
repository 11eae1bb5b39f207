/** Params side by side: only what differs, unless all is asked for. */
import { useMemo } from "preact/hooks";
import type { Named } from "../../charts/chart";
import { whole } from "../../format";
import { Empty } from "../../parts/empty";
import { flag, useParam } from "../../url";
import { Heads } from "./heads";
import { paramRows, type Run } from "./runs";

const allCodec = flag();

type Props = { runs: readonly Run[]; named: readonly Named[]; baseline: string };

export function Params({ runs, named, baseline }: Props) {
  const [all, setAll] = useParam("same", allCodec);
  const rows = useMemo(() => paramRows(runs), [runs]);
  const base = runs.findIndex(({ id }) => id === baseline);
  const same = rows.filter((row) => row.same).length;
  const shown = all ? rows : rows.filter((row) => !row.same);
  if (!runs.length) return <Empty title="No run is selected">Tick a run in the list to see its params.</Empty>;
  if (!rows.length)
    return <Empty title="These runs have no params">Params that a run was started with or logged appear here.</Empty>;
  return (
    <div class="compare-part">
      <p class="compare-note">
        {shown.length === 0
          ? `All ${whole(same)} params are the same.`
          : `${whole(rows.length - same)} of ${whole(rows.length)} params differ.`}{" "}
        {same > 0 && (
          <label>
            <input type="checkbox" checked={all} onChange={() => setAll(!all)} /> Show equal params too ({whole(same)})
          </label>
        )}
      </p>
      {shown.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keys
        <section class="compare-table" tabIndex={0} aria-label="Params">
          <table>
            <Heads named={named} baseline={baseline} first="Param" />
            <tbody>
              {shown.map(({ key, values, same: alike }) => (
                <tr key={key} class={alike ? "same" : undefined}>
                  <th scope="row" class="clip" title={key}>
                    {key}
                  </th>
                  {values.map((value, at) => (
                    <td
                      key={runs[at]?.id}
                      class={base >= 0 && at !== base && value !== values[base] ? "clip other" : "clip"}
                      title={value ?? "not set"}
                    >
                      {value ?? <span class="muted">–</span>}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}
