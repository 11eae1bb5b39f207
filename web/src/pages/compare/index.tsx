/** Compare: runs over each other, side by side, in groups and against each other. */
import "./compare.css";
import { useMemo } from "preact/hooks";
import type { Named } from "../../charts/chart";
import { useMetricKeys } from "../../charts/keys";
import { makeSync } from "../../charts/sync";
import { useView } from "../../charts/view";
import { whole } from "../../format";
import { useKeys } from "../../keys";
import { colourOf, dashOf, looksOf } from "../../palette";
import { Empty } from "../../parts/empty";
import { Tabs } from "../../parts/tabs";
import { here, href, oneOf, query, text, useParam } from "../../url";
import { Best } from "./best";
import { Overlay } from "./overlay";
import { Parallel } from "./parallel";
import { Params } from "./params";
import { RunList } from "./runlist";
import { Scatter } from "./scatter";
import { useSelection } from "./selection";

const TABS = [
  { id: "charts", name: "Charts" },
  { id: "params", name: "Params" },
  { id: "metrics", name: "Metrics" },
  { id: "parallel", name: "Parallel" },
  { id: "scatter", name: "Scatter" },
] as const;
const tabCodec = oneOf(
  TABS.map(({ id }) => id),
  "charts",
);
const groupCodec = text();

export default function Compare() {
  const view = useView();
  const sync = useMemo(makeSync, []);
  const selection = useSelection();
  const [tab, setTab] = useParam("tab", tabCodec);
  const [group, setGroup] = useParam("group", groupCodec);
  const { runs, drawn } = selection;
  const all = useMemo(() => runs.map(({ id }) => id), [runs]);
  const looks = useMemo(() => looksOf(all), [all]);
  const named = useMemo<Named[]>(
    () =>
      runs.flatMap(({ id, name }) => {
        const look = looks.get(id);
        return look ? [{ id, name: name || id, look: { colour: colourOf(look), dash: dashOf(look) } }] : [];
      }),
    [runs, looks, colourOf({ colour: 0, dash: 0 })],
  );
  const shown = useMemo(() => named.filter(({ id }) => drawn.has(id)), [named, drawn]);
  const keys = useMetricKeys(all, view.search);
  useKeys(
    "Compare",
    TABS.map(({ id, name }, at) => ({ keys: String(at + 1), does: name, act: () => setTab(id, { push: true }) })),
  );
  const tabs = TABS.map(({ id, name }) => ({ id, name, to: tabLink(id) }));
  return (
    <div class="page compare">
      <h1 class="hidden">Compare runs</h1>
      <RunList selection={selection} named={named} sync={sync} />
      <div class="compare-main">
        <Tabs tabs={tabs} current={tab} label="Views" />
        {selection.problem && !runs.length ? (
          <Empty title="The runs could not be loaded">{`${selection.problem.what}. ${selection.problem.next}`}</Empty>
        ) : runs.length === 0 ? (
          !selection.loading && (
            <Empty title="No runs to compare yet">
              Add runs by name in the list, or select some in <a href={href("/")}>Runs</a> and press <kbd>c</kbd>.
            </Empty>
          )
        ) : (
          <>
            {selection.missing.length > 0 && (
              <p class="compare-note" role="status">
                {whole(selection.missing.length)} of the runs in this URL no longer exist.
              </p>
            )}
            {tab === "charts" && (
              <Overlay
                runs={runs}
                shown={shown}
                keys={keys}
                view={view}
                sync={sync}
                group={group}
                setGroup={setGroup}
              />
            )}
            {tab === "params" && (
              <Params runs={runs.filter(({ id }) => drawn.has(id))} named={shown} baseline={selection.baseline} />
            )}
            {tab === "metrics" && (
              <Best named={shown} baseline={selection.baseline} view={view} total={keys.all.length} />
            )}
            {tab === "parallel" && (
              <Parallel runs={runs} named={named} keys={keys.all} selection={selection} sync={sync} />
            )}
            {tab === "scatter" && <Scatter runs={runs} named={named} keys={keys.all} sync={sync} />}
          </>
        )}
      </div>
    </div>
  );
}

/** The same view on another tab. */
function tabLink(tab: string): string {
  const params = Object.fromEntries(query.value);
  return href(here.value.path, { ...params, tab: tab === "charts" ? null : tab });
}
