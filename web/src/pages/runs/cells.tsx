/** What stands in a cell of the list of runs. */
import { ago, duration, NONE, num, percent, rough, short, stamp, when } from "../../format";
import { shownLegLimit } from "../../legs";
import { Badge } from "../../parts/badge";
import { Progress } from "../../parts/progress";
import { useNow } from "../../parts/stale";
import { href } from "../../url";
import type { Row } from "./rows";
import { Spark } from "./spark";

const OVER = new Set(["finished", "failed", "cancelled"]);
const OWN = /^(onward|mlflow)\./; // tags that programs write for themselves

type Props = { id: string; row: Row; spark: string };

export function Cell({ id, row, spark }: Props) {
  switch (id) {
    case "name":
      return (
        <a class="clip" href={href(`/runs/${encodeURIComponent(row.id)}`)} title={row.name || row.id} tabIndex={-1}>
          <bdi>{row.name || row.id}</bdi>
        </a>
      );
    case "state":
      return <State row={row} />;
    case "why":
      return (
        <span class="clip muted" title={[row.why, row.next].filter(Boolean).join(" → ")}>
          <bdi>{row.why || row.reason}</bdi>
        </span>
      );
    case "progress":
      return <Far row={row} />;
    case "spark":
      return <Spark run={row.id} metric={spark} tick={OVER.has(row.state) ? 0 : Math.floor(row.updated / 5)} />;
    case "legs":
      return <Legs row={row} />;
    case "checkpoint":
      return <Saved row={row} />;
    case "gpu":
      return <span title="Mean over its GPUs, last five minutes">{percent(row.gpu_use)}</span>;
    case "queue":
      return <Queue row={row} />;
    case "tags":
      return <Tags row={row} />;
    case "experiment":
      return <bdi class="clip">{row.experiment_name}</bdi>;
    case "created":
    case "started":
    case "ended":
      return <Time time={row[id]} />;
    case "duration":
      return <Lasted row={row} />;
    case "user":
      return <bdi class="clip">{row.user || NONE}</bdi>;
    case "cluster":
      return <bdi class="clip">{row.cluster ?? NONE}</bdi>;
    case "id":
      return <span class="mono clip">{row.id}</span>;
    default:
      return <Given id={id} row={row} />;
  }
}

function State({ row }: { row: Row }) {
  const now = useNow(30);
  if (row.silent_since === null)
    return <Badge state={row.state} word={row.no_job ? "no job" : undefined} title={row.why || undefined} />;
  return (
    <Badge state="waiting" word="no news" title={`Nothing heard of its leg, last ${ago(row.silent_since, now)}`} />
  );
}

function Given({ id, row }: { id: string; row: Row }) {
  const dot = id.indexOf(".");
  const room = id.slice(0, dot);
  const key = id.slice(dot + 1);
  if (room === "metrics") {
    const metric = row.metrics?.[key];
    return metric ? (
      <span title={`Step ${metric.step}; lowest ${num(metric.low)}, highest ${num(metric.high)}`}>
        {num(metric.value)}
      </span>
    ) : (
      <span class="muted">{NONE}</span>
    );
  }
  const value = (room === "params" ? row.params : row.tags)?.[key];
  return value === undefined ? (
    <span class="muted">{NONE}</span>
  ) : (
    <bdi class="clip" title={value}>
      {value}
    </bdi>
  );
}

function Far({ row }: { row: Row }) {
  const { step, total_steps: all, fraction } = row.progress;
  if (fraction !== null)
    return <Progress fraction={fraction} state={row.state} label={`Step ${short(step)} of ${short(all)}`} />;
  return step === null ? <span class="muted">{NONE}</span> : <span class="muted clip">step {short(step)}</span>;
}

function Legs({ row }: { row: Row }) {
  const { now, max, done } = row.legs;
  const limit = shownLegLimit(row.legs);
  if (!now && max === null) return <span class="muted">{NONE}</span>;
  return (
    <span title={`Leg ${now}${limit === null ? "" : ` of at most ${limit}`}; ${done} ended`}>
      {now}
      {limit !== null && <span class="muted">/{limit}</span>}
    </span>
  );
}

function Saved({ row }: { row: Row }) {
  const now = useNow(10);
  const saved = row.checkpoint;
  if (!saved) return <span class="muted">{NONE}</span>;
  const words = `Step ${saved.step}, ${stamp(saved.at)}`;
  return <span title={words}>{OVER.has(row.state) ? `step ${short(saved.step)}` : rough(now - saved.at)}</span>;
}

function Queue({ row }: { row: Row }) {
  const now = useNow(10);
  const wait = row.queue_wait_s;
  if (wait === null) return <span class="muted">{NONE}</span>;
  const goesOn = row.state === "submitted" || row.state === "waiting";
  return <span class={goesOn ? "going" : ""}>{rough(goesOn ? Math.max(wait, wait + now - row.updated) : wait)}</span>;
}

function Tags({ row }: { row: Row }) {
  const own = Object.entries(row.tags ?? {}).filter(([key]) => !OWN.test(key));
  return (
    <span class="tags clip" title={own.map(([key, value]) => (value ? `${key}: ${value}` : key)).join("\n")}>
      {own.slice(0, 6).map(([key, value]) => (
        <span key={key} class="tag">
          <bdi>{value && value !== "yes" && value !== "true" ? `${key}: ${value}` : key}</bdi>
        </span>
      ))}
    </span>
  );
}

function Time({ time }: { time: number | null }) {
  const now = useNow(60);
  return <span title={`${stamp(time)}, ${ago(time, now)}`}>{when(time, now)}</span>;
}

function Lasted({ row }: { row: Row }) {
  const now = useNow(10);
  if (row.started === null) return <span class="muted">{NONE}</span>;
  return <span>{duration((row.ended ?? now) - row.started)}</span>;
}
