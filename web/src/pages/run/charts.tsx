/** A run's charts: all its metrics by prefix, one look at all of them. */
import { useMemo } from "preact/hooks";
import type { Named } from "../../charts/chart";
import { ChartGrid } from "../../charts/grid";
import { useMetricKeys } from "../../charts/keys";
import { makeSync } from "../../charts/sync";
import { Toolbar } from "../../charts/toolbar";
import { useView } from "../../charts/view";
import { colourOf, lookOf } from "../../palette";
import { Empty } from "../../parts/empty";

export default function Charts({ id }: { id: string }) {
  const view = useView();
  const sync = useMemo(makeSync, []);
  const runs = useMemo(() => [id], [id]);
  const keys = useMetricKeys(runs, view.search);
  const colour = colourOf(lookOf(id));
  const named = useMemo<Named[]>(() => [{ id, name: id, look: { colour, dash: [] } }], [id, colour]);
  if (keys.problem && !keys.all.length)
    return <Empty title="The metrics could not be loaded">{`${keys.problem.what}. ${keys.problem.next}`}</Empty>;
  if (keys.loading) return null;
  if (!keys.all.length) {
    return (
      <Empty title="No metrics yet">
        Charts appear here as soon as the training logs a metric, with{" "}
        <code>{'onward.log({"loss": 0.5}, step=1)'}</code>, MLflow calls or TensorBoard files.
      </Empty>
    );
  }
  return (
    <>
      <Toolbar view={view} keys={keys.all} total={keys.all.length} single />
      {keys.found.length ? (
        <ChartGrid keys={keys.found} named={named} view={view} sync={sync} />
      ) : (
        <Empty title={`No metric of this run matches “${view.search}”`}>
          <button type="button" onClick={() => view.setSearch("")}>
            Show all {keys.all.length}
          </button>
        </Empty>
      )}
    </>
  );
}
