/** A run's head: its name and state, why it is in it, what shows that, and what to do next, as a button. */
import { ago, stamp, when } from "../../format";
import { Badge } from "../../parts/badge";
import { Icon } from "../../parts/icon";
import { AsOf, useNow } from "../../parts/stale";
import { href } from "../../url";
import { Acts } from "./acts";
import { logPage, runPage } from "./address";
import { isOver, type Overview, type Reading } from "./feed";

export function Header({ id, reading, brief }: { id: string; reading: Reading<Overview>; brief: boolean }) {
  const told = reading.data;
  const now = useNow(30);
  if (!told)
    return (
      <header class="run-head" aria-busy={!reading.fault}>
        <h1>
          <bdi>{id}</bdi>
        </h1>
        {reading.fault && <p class="run-fault">{`${reading.fault.what}. ${reading.fault.next}`}</p>}
      </header>
    );
  const { run } = told;
  const since = run.ended ?? run.started ?? run.created;
  const word = run.ended ? "ended" : run.started ? "started" : "submitted";
  return (
    <header class="run-head">
      <div class="run-title">
        <h1 title={run.name}>
          <bdi>{run.name || run.id}</bdi>
        </h1>
        <Badge state={run.state} word={wordOf(run)} />
        <span class="run-where muted">
          <a href={href("/", { q: `experiment = '${run.experiment_name.replace(/'/g, "''")}'` })}>
            <bdi>{run.experiment_name}</bdi>
          </a>
          <span class="mono" title="Run id">
            {run.id}
          </span>
          {run.cluster && (
            <span>
              on <bdi>{run.cluster}</bdi>
            </span>
          )}
          {told.request && (
            <span>
              for{" "}
              <a href={href(`/requests/${encodeURIComponent(told.request)}`)}>
                request <bdi>{told.request}</bdi>
              </a>
            </span>
          )}
          {told.pipeline && (
            <span>
              of{" "}
              <a href={href(`/pipelines/${encodeURIComponent(told.pipeline)}`)}>
                pipeline <bdi>{told.pipeline}</bdi>
              </a>
            </span>
          )}
          <span title={`${stamp(since)}, ${ago(since, now)}`}>
            {word} {when(since, now)}
          </span>
          <AsOf time={reading.readAt} after={isOver(run.state) ? 1e9 : 60} />
        </span>
        <Acts told={told} again={reading.again} />
      </div>
      {reading.fault && <p class="run-fault">{`${reading.fault.what}. This page may be out of date.`}</p>}
      {brief ? <p class="run-why muted clip">{run.why}</p> : <Cause id={id} told={told} />}
    </header>
  );
}

/** Why, the lines that show it, and the next step. */
function Cause({ id, told }: { id: string; told: Overview }) {
  const { run, evidence, jobs } = told;
  const now = useNow(30);
  const bad = run.state === "failed";
  const last = jobs.filter(({ started }) => started !== null).at(-1);
  const log = { leg: last?.leg ?? 1, stream: bad ? "err" : "out" };
  if (!run.why && !evidence.length) return null;
  return (
    <section class={`run-cause ${run.state}`} aria-label="Why it is in this state">
      <p class="run-why">
        <bdi>{sentence(run.why || run.reason)}</bdi>
      </p>
      {told.no_job_since !== null && (
        <p class="run-no-job">
          <strong>No job</strong> since {when(told.no_job_since, now)}, {ago(told.no_job_since, now)}.
        </p>
      )}
      {run.silent_since !== null && (
        <p class="run-no-job">
          <strong>No news</strong> from the leg since {when(run.silent_since, now)}, {ago(run.silent_since, now)}: the
          storage of the run's folder may hang on its node, or be full.
        </p>
      )}
      {run.next && (
        <p class="run-next">
          <Icon name="onward" />
          <bdi>{sentence(run.next)}</bdi>
        </p>
      )}
      {evidence.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so do keys
        <pre class="evidence" role="group" tabIndex={0} aria-label="Log lines that show the cause">
          {evidence.join("\n")}
        </pre>
      )}
      {last && run.source === "onward" && (
        <p class="run-links">
          <a href={logPage(id, log)}>
            {bad ? "Errors" : "Output"} of leg {log.leg}
          </a>
          {bad && <a href={logPage(id, { leg: last.leg, stream: "out" })}>Output of leg {last.leg}</a>}
          <a href={logPage(id, { leg: 0, stream: "supervisor" })}>Supervisor's log</a>
          {told.actions.resume && <a href={runPage(id, "checkpoints")}>Checkpoints</a>}
        </p>
      )}
    </section>
  );
}

function wordOf(run: Overview["run"]): string | undefined {
  const trouble = run.no_job ? "no job" : run.silent_since !== null ? "no news" : "";
  return trouble ? `${run.state}, ${trouble}` : undefined;
}

export function sentence(words: string): string {
  const text = words.trim();
  return text ? text[0]?.toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".") : "";
}
