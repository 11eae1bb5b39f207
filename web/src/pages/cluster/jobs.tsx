/** Jobs, mine first: what each asks for, where it runs until when, or why it waits and when it should start. */
import { useState } from "preact/hooks";
import { duration, num, stamp, when } from "../../format";
import { Sideways } from "../../parts/sideways";
import { useNow } from "../../parts/stale";
import { href } from "../../url";
import { asks, type Job, many, runOf } from "./words";

const FIRST = 100;

type Props = { jobs: readonly Job[]; none: string; more: number };

export function Jobs({ jobs, none, more }: Props) {
  const [shown, setShown] = useState(FIRST);
  const ranked = jobs.some(({ priority }) => priority !== null);
  if (!jobs.length) return <p class="none">{none}</p>;
  return (
    <>
      <Sideways label="Jobs, in a table">
        <table class="cluster-table jobs-table">
          <thead>
            <tr>
              <th scope="col">Job</th>
              <th scope="col">State</th>
              <th scope="col">Queue</th>
              <th scope="col">Requests</th>
              {ranked && (
                <th scope="col" class="right" title="On the scheduler's own scale; higher starts first">
                  Priority
                </th>
              )}
              <th scope="col">When</th>
              <th scope="col">Why it waits</th>
            </tr>
          </thead>
          <tbody>
            {jobs.slice(0, shown).map((job) => (
              <Line key={job.id} job={job} ranked={ranked} />
            ))}
          </tbody>
        </table>
      </Sideways>
      {jobs.length > shown && (
        <button type="button" onClick={() => setShown(jobs.length)}>
          Show all {jobs.length}
        </button>
      )}
      {more > 0 && <p class="muted">{many(more, "more job")} not shown: too many for one page.</p>}
    </>
  );
}

const WORDS: Record<string, string> = { queued: "waiting", held: "submitted" };

function Line({ job, ranked }: { job: Job; ranked: boolean }) {
  const run = job.mine ? runOf(job.name) : null;
  return (
    <tr class={job.mine ? "mine" : ""}>
      <th scope="row">
        <span class="job-name clip" title={job.name}>
          {run ? <a href={href("/", { q: `name = '${run.replace(/'/g, "''")}'` })}>{job.name}</a> : job.name}
        </span>
        <small class="clip">
          {job.id}
          {job.tasks > 1 && ` (${many(job.tasks, "task")})`} · {job.mine ? "mine" : job.user}
        </small>
      </th>
      <td>
        <span class={`badge ${WORDS[job.state] ?? job.state}`}>{job.state}</span>
      </td>
      <td>{job.queue || <span class="muted">any</span>}</td>
      <td>
        {asks(job)}
        {job.asked.time !== null && <small>for {duration(job.asked.time)}</small>}
      </td>
      {ranked && (
        <td class="right">
          {job.priority !== null && <span title={job.factors || undefined}>{num(job.priority)}</span>}
        </td>
      )}
      <td>
        <When job={job} />
      </td>
      <td class="why">
        {job.reason ? (
          <>
            <span title={job.native ? `Reported by the scheduler: ${job.native}` : undefined}>{job.reason}</span>
            {job.mine && job.factors && <small>priority: {job.factors}</small>}
          </>
        ) : (
          <span class="muted">{job.nodes.length ? `runs on ${places(job.nodes)}` : ""}</span>
        )}
      </td>
    </tr>
  );
}

function When({ job }: { job: Job }) {
  const now = useNow(30);
  if (job.started !== null)
    return (
      <span title={`Since ${stamp(job.started)}`}>
        {job.ends === null ? `since ${when(job.started, now)}` : `ends by ${when(job.ends, now)}`}
        {job.ends !== null && <small>in {duration(Math.max(job.ends - now, 0))}</small>}
      </span>
    );
  if (job.expected_start === null)
    return <span class="muted">{job.submitted === null ? "" : `waiting ${duration(now - job.submitted)}`}</span>;
  const left = job.expected_start - now;
  return (
    <span title="The scheduler's estimate">
      starts about {when(job.expected_start, now)}
      <small>{left > 0 ? `in ${duration(left)}` : "any moment now"}</small>
    </span>
  );
}

function places(nodes: readonly string[]): string {
  return nodes.length > 3 ? `${nodes.slice(0, 3).join(", ")} and ${nodes.length - 3} more` : nodes.join(", ");
}
