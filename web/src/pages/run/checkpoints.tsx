/** A run's checkpoints: what is kept where and why, and a branch from any of them. */
import { useState } from "preact/hooks";
import { type Got, get } from "../../api";
import { ago, bytes, duration, NONE, num, stamp, whole } from "../../format";
import { Empty } from "../../parts/empty";
import { Sideways } from "../../parts/sideways";
import { AsOf, useNow } from "../../parts/stale";
import { flag, useParam } from "../../url";
import { logPage } from "./address";
import { CloneDialog, type From } from "./clone";
import { copy } from "./copy";
import { isOver, type Overview, useReading, useRun } from "./feed";
import "./kept.css";

type Ledger = Got<"/api/v1/runs/{run_id}/checkpoints">["checkpoints"];
const OLDEST = flag();

export default function CheckpointsTab({ id }: { id: string }) {
  const { data: told } = useRun();
  const over = told ? isOver(told.run.state) : false;
  const { data, fault, readAt } = useReading(
    id,
    `checkpoints ${id}`,
    (signal) => get("/api/v1/runs/{run_id}/checkpoints", { path: { run_id: id }, signal }),
    { every: over ? 0 : 10 },
  );
  const [oldest, setOldest] = useParam("oldest", OLDEST);
  const [from, setFrom] = useState<From | null>(null);
  if (fault && !data)
    return <Empty title="The checkpoints could not be loaded">{`${fault.what}. ${fault.next}`}</Empty>;
  if (!data || !told) return null;
  if (!data.checkpoints.length) return <None told={told} />;
  const rows = oldest ? data.checkpoints : [...data.checkpoints].reverse();
  const size = rows.reduce((sum, row) => sum + (row.bytes ?? 0), 0);
  return (
    <section class="ledger" aria-label="Checkpoints">
      <p class="muted ledger-sum">
        {rows.length} checkpoints, {bytes(size)} in all. <AtRisk told={told} />{" "}
        <AsOf time={readAt} after={over ? 1e9 : 60} />
        <button type="button" class="quiet" onClick={() => setOldest(!oldest)}>
          {oldest ? "Oldest first" : "Newest first"}
        </button>
      </p>
      <Sideways label="All checkpoints">
        <table class="plain">
          <thead>
            <tr>
              <th class="right">Step</th>
              <th>State</th>
              <th class="right">Size</th>
              <th>Age</th>
              <th>Leg</th>
              <th>Why kept</th>
              <th>Metrics at this step</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Entry key={`${row.leg}-${row.step}`} id={id} row={row} told={told} branch={setFrom} />
            ))}
          </tbody>
        </table>
      </Sideways>
      {from && <CloneDialog told={told} from={from} close={() => setFrom(null)} />}
    </section>
  );
}

type EntryProps = { id: string; row: Ledger[number]; told: Overview; branch: (from: From) => void };

function Entry({ id, row, told, branch }: EntryProps) {
  const now = useNow(10);
  const metrics = Object.entries(row.metrics).slice(0, 3);
  return (
    <tr>
      <td class="right">
        <strong>{whole(row.step)}</strong>
      </td>
      <td>
        <State row={row} />
      </td>
      <td class="right">{bytes(row.bytes)}</td>
      <td title={stamp(row.created)}>{ago(row.created, now)}</td>
      <td>{row.leg ? <a href={logPage(id, { leg: row.leg, stream: "out" })}>{row.leg}</a> : "branched"}</td>
      <td class="wide">{row.problem ? <span class="run-fault">{row.problem}</span> : row.kept || NONE}</td>
      <td
        class="muted"
        title={Object.entries(row.metrics)
          .map(([key, value]) => `${key} ${num(value as number)}`)
          .join("\n")}
      >
        {metrics.map(([key, value]) => `${key} ${num(value as number)}`).join(", ") || NONE}
      </td>
      <td class="ledger-acts">
        {row.folder && (
          <button
            type="button"
            title={`Copies: ${restoring(row.folder)}`}
            onClick={() => void copy(restoring(row.folder ?? ""), "The command")}
          >
            Copy restore command
          </button>
        )}
        {told.actions.clone && row.state !== "damaged" && row.state !== "told" && (
          <button type="button" onClick={() => branch({ leg: row.leg, step: row.step })}>
            Branch from here
          </button>
        )}
      </td>
    </tr>
  );
}

/** Checked and copied by anyone with a shell: a checkpoint is a plain folder. */
export function restoring(folder: string): string {
  return `cp -r ${quoted(folder)} .`;
}

function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const STATES: Record<string, { word: string; about: string; look: string }> = {
  published: {
    word: "persistent",
    about: "On shared storage, with the file sizes in its manifest",
    look: "finished",
  },
  verified: { word: "verified", about: "Every byte was read and matches its hash", look: "finished" },
  damaged: { word: "damaged", about: "No leg will resume from it", look: "failed" },
  told: { word: "reported", about: "Published where this server cannot check it", look: "cancelled" },
};

function State({ row }: { row: Ledger[number] }) {
  const known = STATES[row.state];
  return (
    <span class={`badge ${known?.look ?? ""}`} title={known?.about}>
      {known?.word ?? row.state}
    </span>
  );
}

function AtRisk({ told }: { told: Overview }) {
  const now = useNow();
  if (!told.risk) return null;
  return <>{duration(told.risk.seconds + Math.max(0, now - told.as_of))} of work are not in any checkpoint yet.</>;
}

function None({ told }: { told: Overview }) {
  if (told.run.source !== "onward")
    return (
      <Empty title="No checkpoints">
        Onward stores checkpoints only of trainings that it runs; this run only records its metrics.
      </Empty>
    );
  return (
    <Empty title="No checkpoint yet">
      What the training writes to <code>ONWARD_CHECKPOINT_DIR</code>, or saves in{" "}
      <code>with run.checkpoint(step) as folder</code>, appears here once it is on shared storage.
      {told.risk && ` If its node died now, ${duration(told.risk.seconds)} of work would be lost.`}
    </Empty>
  );
}
