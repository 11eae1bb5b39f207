/** Stop, cancel, resume: what each would do to this run, asked once. */
import { useState } from "preact/hooks";
import { inWords, post } from "../../api";
import { duration, whole } from "../../format";
import { Dialog } from "../../parts/dialog";
import { useNow } from "../../parts/stale";
import { say } from "../../parts/toast";
import { type Changed, Changes, given, NOTHING } from "./changes";
import type { Overview } from "./feed";

type Props = { told: Overview; close: () => void; again: () => void };
type Words = { what: string; next: string };

/** Do it once: what went wrong stays in the dialog. */
function useAct(close: () => void, again: () => void) {
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<Words | null>(null);
  const act = async (do_: () => Promise<unknown>, done: string) => {
    setBusy(true);
    setWrong(null);
    try {
      await do_();
      say(done);
      close();
      again();
    } catch (error) {
      setWrong(inWords(error));
      setBusy(false);
    }
  };
  return { busy, wrong, act };
}

export function Wrong({ wrong }: { wrong: Words | null }) {
  if (!wrong) return null;
  return (
    <p class="dialog-wrong" role="alert">
      {wrong.what}
      {wrong.next && <small>{wrong.next}</small>}
    </p>
  );
}

export function StopDialog({ told, close, again }: Props) {
  const { run } = told;
  const { busy, wrong, act } = useAct(close, again);
  const going = run.state === "running";
  return (
    <Dialog title={`Stop ${run.name}?`} close={close}>
      <p>
        {going
          ? `The training is asked to save a checkpoint at its next safe point. Then leg ${run.leg} ends, and no further leg is queued.`
          : "No leg is running: its queued job is cancelled, and the run ends at its last checkpoint."}{" "}
        You can resume it later, and nothing is lost.
      </p>
      <Wrong wrong={wrong} />
      <footer>
        <button type="button" onClick={close}>
          Keep running
        </button>
        <button
          type="button"
          class="primary"
          disabled={busy}
          onClick={() =>
            act(
              () => post("/api/v1/runs/{run_id}/stop", { path: { run_id: run.id } }),
              going ? `${run.name} will save and stop` : `${run.name} is stopped`,
            )
          }
        >
          Stop after a checkpoint
        </button>
      </footer>
    </Dialog>
  );
}

export function CancelDialog({ told, close, again }: Props) {
  const { run } = told;
  const { busy, wrong, act } = useAct(close, again);
  return (
    <Dialog title={`Cancel ${run.name} now?`} close={close}>
      <p>
        Its job is killed without a last checkpoint, and its queued jobs are cancelled. <AtRisk told={told} />
      </p>
      {told.actions.stop && (
        <p class="muted">To lose nothing, stop it after a checkpoint instead. That takes one step and a save.</p>
      )}
      <Wrong wrong={wrong} />
      <footer>
        <button type="button" onClick={close}>
          Keep running
        </button>
        <button
          type="button"
          class="primary bad"
          disabled={busy}
          onClick={() =>
            act(() => post("/api/v1/runs/{run_id}/cancel", { path: { run_id: run.id } }), `${run.name} is cancelled`)
          }
        >
          Cancel it now
        </button>
      </footer>
    </Dialog>
  );
}

function AtRisk({ told }: { told: Overview }) {
  const now = useNow();
  const { risk } = told;
  if (!risk) return <>No leg is running, so no work is lost.</>;
  const seconds = risk.seconds + Math.max(0, now - told.as_of);
  const steps = risk.steps ? `, ${whole(risk.steps)} ${risk.steps === 1 ? "step" : "steps"},` : "";
  return (
    <strong>
      {duration(seconds)} of work
      {steps} since {risk.since_step === null ? "the start" : `the checkpoint of step ${whole(risk.since_step)}`} will
      be lost.
    </strong>
  );
}

export function ResumeDialog({ told, close, again }: Props) {
  const { run, pace, resources, limits } = told;
  const { busy, wrong, act } = useAct(close, again);
  const [changed, setChanged] = useState<Changed>(NOTHING);
  const saved = run.checkpoint;
  const beyond = saved && pace.step !== null ? Math.max(0, pace.step - saved.step) : 0;
  return (
    <Dialog title={`Resume ${run.name}`} close={close}>
      <form
        class="run-form"
        onSubmit={(event) => {
          event.preventDefault();
          const body = given(changed);
          void act(
            () => post("/api/v1/runs/{run_id}/resume", { path: { run_id: run.id }, body }),
            `Leg ${run.leg + 1} of ${run.name} is queued`,
          );
        }}
      >
        <p>
          {saved
            ? `It continues as leg ${run.leg + 1} from its newest verified checkpoint, step ${whole(saved.step)}.${
                beyond ? ` The ${whole(beyond)} steps after it run again.` : ""
              }`
            : `It has no checkpoint: leg ${run.leg + 1} starts from scratch.`}{" "}
          The code is the copy made at submit.
        </p>
        {run.state === "failed" && (
          <p class="muted">It will fail again unless you have fixed the cause: {run.reason || run.why}.</p>
        )}
        <Changes changed={changed} set={setChanged} resources={resources} limits={limits} />
        <Wrong wrong={wrong} />
        <footer>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy}>
            Resume
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
