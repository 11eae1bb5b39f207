/** One pipeline: how it stands, its stages as a graph, what its benchmarks say, what failed, and who works on it. */
import { useEffect, useState } from "preact/hooks";
import { get, post } from "../../api";
import { ago, stamp, when } from "../../format";
import { Badge } from "../../parts/badge";
import { DetailHead, DetailPage } from "../../parts/sheet/detail";
import { Sure } from "../../parts/sheet/sure";
import { useNow } from "../../parts/stale";
import { complain, say } from "../../parts/toast";
import { useReading } from "../../reading";
import "./pipelines.css";
import { text, useParam } from "../../url";
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
  const reading = useReading(
    `pipeline ${name} ${baseline}`,
    (signal) => get("/api/v1/pipelines/{name}", { path: { name }, query: { baseline: baseline || null }, signal }),
    every,
  );
  const { data, again } = reading;
  const running = data?.state === "running";
  useEffect(() => setEvery(!data || running ? OFTEN : SELDOM), [!data, running]);
  return (
    <DetailPage one="pipeline" all="Pipelines" reading={reading}>
      {(told) => (
        <div class="sheet pipelines">
          <Head told={told} again={again} />
          <Stages told={told} />
          {told.benchmarks.length > 0 && <Scores summary={told.summary} running={running} />}
          <FailedParts told={told} />
          {told.workers.length > 0 && <Workers workers={told.workers} />}
        </div>
      )}
    </DetailPage>
  );
}

function Head({ told, again }: Act) {
  const now = useNow(1);
  return (
    <DetailHead
      all="Pipelines"
      title={told.name}
      badge={<Badge state={told.state} />}
      acts={
        <>
          {canRerun(told) && <Rerun told={told} again={again} />}
          {told.state === "running" && <Cancel told={told} again={again} />}
        </>
      }
      facts={[
        ["Created", <span title={stamp(told.created)}>{`${when(told.created, now)}, ${ago(told.created, now)}`}</span>],
        [told.ended === null ? "Elapsed" : "Took", took(told, now)],
        ["Cluster", <bdi>{told.cluster}</bdi>],
        ["Stages", `${told.stages_done} of ${told.stages_all} done`],
        told.benchmarks.length > 0 && ["Tasks", <Counts counts={told.tasks} />],
        ["Folder", <bdi class="mono words">{told.folder}</bdi>],
      ]}
    >
      {told.cause && <p class={told.state === "failed" ? "bad words" : "words"}>{told.cause}</p>}
    </DetailHead>
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
  const cancel = async () => {
    await post("/api/v1/pipelines/{name}/cancel", { path: { name: told.id } });
    say(`${told.name} is cancelled`, { next: "running parts are stopped; finished results are kept" });
    again();
  };
  return <Sure verb="Cancel" yes="Yes, cancel the pipeline" act={cancel} />;
}
