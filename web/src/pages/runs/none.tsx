/** No runs: why there are none, and what next. */
import { get } from "../../api";
import { Empty } from "../../parts/empty";
import { useReading } from "../../reading";
import { href } from "../../url";

type Props = { filter: string; state: string; archived: boolean; reset: () => void };

export function NoRuns({ filter, state, archived, reset }: Props) {
  if (filter || state)
    return (
      <Empty title="No run matches">
        {archived ? "Of the archived runs, none " : "None "}
        {state && (
          <>
            is <strong>{state}</strong>
          </>
        )}
        {state && filter && " and "}
        {filter && (
          <>
            matches <code>{filter}</code>
          </>
        )}
        .
        <br />
        <button type="button" onClick={reset}>
          Show all runs
        </button>
      </Empty>
    );
  if (archived)
    return (
      <Empty title="There are no archived runs">
        Archived runs are hidden from the list; their data is kept.{" "}
        <button type="button" onClick={reset}>
          Show active runs
        </button>
      </Empty>
    );
  return (
    <Empty title="There are no runs yet">
      <a href={href("/new")}>Start one here</a>, or on the command line: <code>onward submit params.yaml</code>. Scripts
      that log to MLflow show up too, once their <code>MLFLOW_TRACKING_URI</code> is this address.
      <Looked />
    </Empty>
  );
}

/** Where the server looked: a run that somebody misses may lie elsewhere. */
function Looked() {
  const { data } = useReading("unreadable folders", (signal) => get("/api/v1/trouble/folders", { signal }), 30_000);
  const roots = data?.roots ?? [];
  if (!roots.length) return null;
  return (
    <>
      <br />
      The server looks for runs in{" "}
      {roots.map((root, index) => (
        <span key={root}>
          {index > 0 && (index === roots.length - 1 ? " and " : ", ")}
          <code>{root}</code>
        </span>
      ))}
      . For another folder, start it with <code>ONWARD_ROOT</code> set to that folder.
    </>
  );
}
