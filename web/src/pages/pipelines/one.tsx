/** One pipeline: how it stands, its stages as a graph, what its benchmarks say, what failed, and who works on it. */
import { useEffect, useState } from "preact/hooks";
import { get, post } from "../../api";
import { ago, stamp, when } from "../../format";
import { Badge } from "../../parts/badge";
import { Empty } from "../../parts/empty";
import { useNow } from "../../parts/stale";
import { complain, say } from "../../parts/toast";
import { useReading } from "../../reading";
import "../../styles/sheet.css";
import "./pipelines.css";
import { href, text, useParam } from "../../url";
import { Counts } from "./counts";
import { FailedParts } from "./failed";
import { Stages } from "./graph";
import { Scores } from "./scores";
import { canRerun, type Details, took } from "./words";
import { Workers } from "./workers";

const OFTEN = 3000; // ms, while it goes on
const SELDOM = 20_000; // one that is over may be taken up again
const BASELINE = text("");

export function One({ name }: { name: string }) {
  const [baseline] = useParam("baseline", BASELINE);
  const [every, setEvery] = useState(OFTEN);
  const { data, fault, again } = useReading(
    `pipeline ${name} ${baseline}`,
    (signal) => get("/api/v1/pipelines/{name}", { path: { name }, query: { baseline: baseline || null }, signal }),
    every,
  );
  const running = data?.state === "running";
  useEffect(() => setEvery(!data || running ? OFTEN : SELDOM), [!data, running]);
  if (!data)
    return fault ? (
      <Empty title="This pipeline could not be loaded">
        {fault.what}. {fault.next} <a href={href("/pipelines")}>All pipelines</a>
      </Empty>
    ) : (
      <p class="empty" role="status">
        Loading …
      </p>
    );
  return (
    <div class="sheet pipelines">
      <Head told={data} again={again} />
      <Stages told={data} />
      {data.benchmarks.length > 0 && <Scores summary={data.summary} running={running} />}
      <FailedParts told={data} />
      {data.workers.length > 0 && <Workers workers={data.workers} />}
    </div>
  );
}

function Head({ told, again }: { told: Details; again: () => void }) {
  const now = useNow(1);
  return (
    <header class="pipeline-head">
      <a href={href("/pipelines")}>Pipelines</a>
      <div class="sheet-head">
        <h1>
          <bdi>{told.name}</bdi>
        </h1>
        <Badge state={told.state} />
        <div class="pipeline-acts">
          {canRerun(told) && <Rerun told={told} again={again} />}
          {told.state === "running" && <Cancel told={told} again={again} />}
        </div>
      </div>
      {told.cause && <p class={told.state === "failed" ? "bad words" : "words"}>{told.cause}</p>}
      <dl class="pipeline-facts">
        <div>
          <dt>Created</dt>
          <dd title={stamp(told.created)}>
            {when(told.created, now)}, {ago(told.created, now)}
          </dd>
        </div>
        <div>
          <dt>{told.ended === null ? "Elapsed" : "Took"}</dt>
          <dd>{took(told, now)}</dd>
        </div>
        <div>
          <dt>Cluster</dt>
          <dd>
            <bdi>{told.cluster}</bdi>
          </dd>
        </div>
        <div>
          <dt>Stages</dt>
          <dd>
            {told.stages_done} of {told.stages_all} done
          </dd>
        </div>
        {told.benchmarks.length > 0 && (
          <div>
            <dt>Tasks</dt>
            <dd>
              <Counts counts={told.tasks} />
            </dd>
          </div>
        )}
        <div class="wide">
          <dt>Folder</dt>
          <dd class="mono words">
            <bdi>{told.folder}</bdi>
          </dd>
        </div>
      </dl>
    </header>
  );
}

type Act = { told: Details; again: () => void };

function Rerun({ told, again }: Act) {
  const [busy, setBusy] = useState(false);
  const rerun = async () => {
    setBusy(true);
    try {
      await post("/api/v1/pipelines/{name}/rerun", { path: { name: told.id } });
      say(`${told.name} continues`, { next: "failed parts run again; finished parts are kept" });
      again();
    } catch (error) {
      complain(error);
    }
    setBusy(false);
  };
  return (
    <button
      type="button"
      class={told.state === "running" ? "" : "primary"}
      disabled={busy}
      onClick={() => void rerun()}
    >
      Rerun failed parts
    </button>
  );
}

function Cancel({ told, again }: Act) {
  const [sure, setSure] = useState(false);
  const cancel = async () => {
    try {
      await post("/api/v1/pipelines/{name}/cancel", { path: { name: told.id } });
      say(`${told.name} is cancelled`, { next: "running parts are stopped; finished results are kept" });
      again();
    } catch (error) {
      complain(error);
    }
    setSure(false);
  };
  if (!sure)
    return (
      <button type="button" class="quiet danger" onClick={() => setSure(true)}>
        Cancel
      </button>
    );
  return (
    <>
      <button type="button" class="danger" onClick={() => void cancel()}>
        Yes, cancel the pipeline
      </button>
      <button type="button" class="quiet" onClick={() => setSure(false)}>
        Keep running
      </button>
    </>
  );
}
