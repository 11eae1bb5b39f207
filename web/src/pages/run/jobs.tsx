/** A run's jobs, one a leg: where, when, and how each ended. */
import { bytes, duration, NONE, stamp, when, whole } from "../../format";
import { Sideways } from "../../parts/sideways";
import { useNow } from "../../parts/stale";
import { flag, useParam } from "../../url";
import { logPage } from "./address";
import type { Overview } from "./feed";

const ALL = flag();
const FEW = 8;

export function Jobs({ id, told }: { id: string; told: Overview }) {
  const now = useNow(30);
  const [all, setAll] = useParam("alljobs", ALL);
  const shown = [...told.jobs].reverse().slice(0, all ? undefined : FEW);
  const rest = told.jobs.length - shown.length;
  if (!told.jobs.length) return <p class="muted">None: Onward submitted no job for this run.</p>;
  return (
    <Sideways label="Jobs of each leg">
      <table class="plain jobs">
        <thead>
          <tr>
            <th>Leg</th>
            <th>End</th>
            <th>Started</th>
            <th>Took</th>
            <th>From step</th>
            <th>Where</th>
            <th>Job</th>
            <th>Logs</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((job) => (
            <tr key={job.leg}>
              <td>{job.leg}</td>
              <td class="wide">
                {job.end ? (
                  <span class={`leg-end ${job.end}`}>{job.end.replaceAll("_", " ")}</span>
                ) : job.started ? (
                  "running"
                ) : (
                  NONE
                )}
                {job.reason && <bdi class="muted"> {job.reason}</bdi>}
                {job.warnings.map((words) => (
                  <small key={words} class="warned">
                    {words}
                  </small>
                ))}
              </td>
              <td title={stamp(job.started)}>{job.started === null ? "queued" : when(job.started, now)}</td>
              <td>{job.started === null ? NONE : duration((job.ended ?? now) - job.started)}</td>
              <td>{whole(job.resumed_step)}</td>
              <td title={[job.gpus.join(", "), job.mem ? bytes(job.mem * 1048576) : ""].filter(Boolean).join("; ")}>
                <bdi>{job.nodes.join(", ") || NONE}</bdi>
              </td>
              <td class="mono">
                <bdi>{job.job ?? NONE}</bdi>
              </td>
              <td class="links">
                {job.started !== null && (
                  <>
                    <a href={logPage(id, { leg: job.leg, stream: "out" })}>out</a>{" "}
                    <a href={logPage(id, { leg: job.leg, stream: "err" })}>err</a>
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {rest > 0 && (
        <button type="button" class="quiet" onClick={() => setAll(true)}>
          Show all {told.jobs.length}
        </button>
      )}
    </Sideways>
  );
}
