/** All metrics of the drawn runs over each other, or of all runs in groups. */
import { useMemo } from "preact/hooks";
import type { Named } from "../../charts/chart";
import { ChartGrid } from "../../charts/grid";
import type { Keys } from "../../charts/keys";
import type { Sync } from "../../charts/sync";
import { Swatch } from "../../charts/tip";
import { Toolbar } from "../../charts/toolbar";
import type { View } from "../../charts/view";
import { whole } from "../../format";
import { colourOf, DASHES, dashOf, LIGHT } from "../../palette";
import { Empty } from "../../parts/empty";
import type { Setter } from "../../url";
import { fieldsOf, gathered, type Run } from "./runs";

type Props = {
  runs: readonly Run[];
  shown: readonly Named[];
  keys: Keys;
  view: View;
  sync: Sync;
  group: string;
  setGroup: Setter<string>;
};

export function Overlay({ runs, shown, keys, view, sync, group, setGroup }: Props) {
  const fields = useMemo(() => fieldsOf(runs), [runs]);
  const groups = useMemo(() => (group ? gathered(runs, group) : null), [runs, group]);
  const theme = colourOf({ colour: 0, dash: 0 });
  const named = useMemo<readonly Named[]>(() => {
    if (!groups || !theme) return shown;
    return groups.map(({ name }, at) => {
      const look = { colour: at % LIGHT.length, dash: Math.floor(at / LIGHT.length) % DASHES.length };
      return { id: name, name, look: { colour: colourOf(look), dash: dashOf(look) } };
    });
  }, [groups, shown, theme]);
  if (!keys.loading && !keys.all.length) {
    return <Empty title="None of these runs have logged a metric yet">Charts appear here as soon as one does.</Empty>;
  }
  return (
    <>
      <Toolbar view={view} keys={keys.all} total={keys.all.length} grouped={groups !== null} />
      <div class="compare-groups">
        <label>
          <span class="muted">Group by</span>
          <select value={group} onChange={(event) => setGroup(event.currentTarget.value, { push: true })}>
            <option value="">nothing</option>
            {fields.map(({ field, values }) => (
              <option key={field} value={field}>
                {field.replace(/^params\./, "")} ({whole(values)})
              </option>
            ))}
          </select>
        </label>
        {groups && (
          <>
            <ul>
              {groups.slice(0, 24).map(({ name, runs: of }) => {
                const one = named.find(({ id }) => id === name);
                return (
                  <li
                    key={name}
                    onPointerEnter={() => (sync.focus.value = name)}
                    onPointerLeave={() => (sync.focus.value = null)}
                  >
                    {one && <Swatch look={one.look} />}
                    <span class="clip">{name}</span>
                    <small>{whole(of.length)}</small>
                  </li>
                );
              })}
            </ul>
            <small>Means over all {whole(runs.length)} runs, shown or not.</small>
          </>
        )}
      </div>
      {keys.found.length ? (
        <ChartGrid keys={keys.found} named={named} groups={groups} view={view} sync={sync} />
      ) : (
        !keys.loading && (
          <Empty title={`No metric of these runs matches “${view.search}”`}>
            <button type="button" onClick={() => view.setSearch("")}>
              Show all {whole(keys.all.length)}
            </button>
          </Empty>
        )
      )}
    </>
  );
}
