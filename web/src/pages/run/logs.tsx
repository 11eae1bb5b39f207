/** A run's logs: any stream of any leg, however long; followed, searched, and at an address that can be shared. */
import { useEffect, useRef } from "preact/hooks";
import { get } from "../../api";
import { Empty } from "../../parts/empty";
import { say } from "../../parts/toast";
import { oneOf, setParams, text, useParam } from "../../url";
import { isOver, useReading, useRun } from "./feed";
import { LogView } from "./log/view";
import "./log/log.css";

const LEG = text("");
const STREAM = oneOf(["out", "err", "supervisor"], "out");
export type Stream = "out" | "err" | "supervisor";
export const STREAMS: Record<Stream, string> = { out: "stdout", err: "stderr", supervisor: "supervisor" };

export default function LogsTab({ id }: { id: string }) {
  const { data: told } = useRun();
  const [leg] = useParam("leg", LEG);
  const [stream] = useParam("log", STREAM);
  const over = told ? isOver(told.run.state) : false;
  const { data, fault } = useReading(
    id,
    `logs ${id}`,
    (signal) => get("/api/v1/runs/{run_id}/logs", { path: { run_id: id }, signal }),
    { every: over ? 0 : 5 },
  );
  const legs = [...new Set(data?.logs.flatMap((log) => (log.leg ? [log.leg] : [])))].sort((a, b) => a - b);
  const newest = legs.at(-1) ?? 0;
  const shown = stream === "supervisor" ? 0 : Number(leg) || newest;
  const before = useRef(newest);
  useEffect(() => {
    if (before.current && newest > before.current && !leg && stream !== "supervisor") say(`Leg ${newest} has started`);
    before.current = newest;
  }, [newest, leg, stream]);
  if (fault && !data) return <Empty title="The logs could not be loaded">{`${fault.what}. ${fault.next}`}</Empty>;
  if (!data || !told) return null;
  if (!data.logs.length)
    return (
      <Empty title="No log yet">
        {told.run.source === "onward"
          ? "The training's output appears here as soon as its first leg starts."
          : "Onward stores the output of trainings that it runs or that onward sync uploads; this run only records its metrics."}
      </Empty>
    );
  const there = data.logs.find((log) => log.leg === shown && log.stream === stream);
  return (
    <LogView
      key={`${shown} ${stream}`}
      id={id}
      leg={shown}
      legs={legs}
      stream={stream}
      bytes={there?.bytes ?? null}
      growing={!over && (shown === newest || stream === "supervisor")}
      ended={told.jobs.find((job) => job.leg === shown)?.end ?? null}
      choose={(to) =>
        setParams(
          {
            leg: to.leg === undefined ? leg || null : to.leg === newest ? null : String(to.leg),
            log: STREAM.write(to.stream ?? stream),
            at: null,
          },
          { push: true },
        )
      }
    />
  );
}
