/** Code that is loaded when it is first needed. While the server is away it is tried again as soon as it is back; what is not there although
 * the server answers was of a version before. */
import { useEffect, useState } from "preact/hooks";
import { address, loginNeeded } from "./api";
import { connection } from "./live";
import { Empty } from "./parts/empty";

type Load<T> = () => Promise<T>;
export type Missing = "away" | "gone";

const kept = new Map<Load<unknown>, unknown>();

/** What `load` gives, null until it is there; and why it is not. */
export function useLoaded<T>(load: Load<T> | null): { got: T | null; missing: Missing | null } {
  const [, redraw] = useState(0);
  const [missing, setMissing] = useState<Missing | null>(null);
  const up = connection.value === "live";
  // a server that is back is asked again
  useEffect(() => {
    if (!load || kept.has(load)) return setMissing(null);
    let left = false;
    load().then(
      (module) => {
        kept.set(load, module);
        if (!left) redraw((count) => count + 1);
      },
      async () => {
        const why = await asked();
        if (!left) setMissing(why);
      },
    );
    return () => {
      left = true;
    };
  }, [load, up]);
  const got = load ? ((kept.get(load) as T | undefined) ?? null) : null;
  return { got, missing: got ? null : missing };
}

/** Whether the server answers, and still knows who asks. */
async function asked(): Promise<Missing> {
  const answer = await fetch(address("/healthz"), { credentials: "same-origin" }).catch(() => null);
  if (answer?.status === 401) loginNeeded.value = true;
  return answer ? "gone" : "away";
}

export function NotLoaded({ missing }: { missing: Missing }) {
  if (missing === "away") return <Empty title="The server does not answer">This page opens as soon as it does.</Empty>;
  return (
    <Empty title="This page could not be loaded">
      The server may have been upgraded since you opened it.{" "}
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </Empty>
  );
}
