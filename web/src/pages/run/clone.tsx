/** Clone: a new run of the same frozen code, with other params; from the beginning, or from one of its checkpoints. */
import { useState } from "preact/hooks";
import { type Got, inWords, post } from "../../api";
import { whole } from "../../format";
import { Dialog } from "../../parts/dialog";
import { say } from "../../parts/toast";
import { go } from "../../url";
import { runPage } from "./address";
import { type Changed, Changes, given, NOTHING, typed } from "./changes";
import { Wrong } from "./ending";
import type { Overview } from "./feed";

export type From = { leg: number; step: number };
type Seen = Extract<Got<"/api/v1/runs/{run_id}/clone", "post">, { script: string }>;
type Props = { told: Overview; close: () => void; from?: From };

export function CloneDialog({ told, close, from }: Props) {
  const { run } = told;
  const [name, setName] = useState(run.name);
  const [params, setParams] = useState<Readonly<Record<string, string>>>(run.params ?? {});
  const [changed, setChanged] = useState<Changed>(NOTHING);
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<{ what: string; next: string } | null>(null);
  const [seen, setSeen] = useState<Seen | null>(null);
  const different = Object.entries(params).filter(([key, value]) => value !== run.params?.[key]);
  const ask = async (dry: boolean) => {
    setBusy(true);
    setWrong(null);
    const body = {
      ...given(changed),
      name: name.trim() && name !== run.name ? name.trim() : null,
      params: Object.fromEntries(different.map(([key, value]) => [key, typed(value)])),
      dry_run: dry,
      ...(from ? { checkpoint: from } : {}),
    };
    try {
      const answer = await post("/api/v1/runs/{run_id}/clone", { path: { run_id: run.id }, body });
      if ("script" in answer) setSeen(answer);
      else {
        say(`${answer.name} is queued`, { next: `a clone of ${run.name}` });
        close();
        go(runPage(answer.id));
      }
    } catch (error) {
      setWrong(inWords(error));
    }
    setBusy(false);
  };
  return (
    <Dialog title={from ? `Branch from step ${whole(from.step)}` : `Clone ${run.name}`} close={close} wide>
      <form
        class="run-form"
        onSubmit={(event) => {
          event.preventDefault();
          void ask(false);
        }}
      >
        <p>
          This queues a new run with this run's frozen code.{" "}
          {from
            ? `Its first leg resumes from a copy of the checkpoint of step ${whole(from.step)} (leg ${from.leg}).`
            : "It starts from scratch."}{" "}
          This run does not change.
        </p>
        <label>
          Name
          <input
            type="text"
            required
            maxLength={64}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        {Object.keys(params).length > 0 && (
          <fieldset class="run-fields">
            <legend>Params{different.length > 0 && `, ${different.length} changed`}</legend>
            {Object.entries(params).map(([key, value]) => (
              <label key={key} class={value === run.params?.[key] ? "" : "changed"}>
                <bdi>{key}</bdi>
                <input
                  type="text"
                  value={value}
                  onInput={(event) => setParams({ ...params, [key]: event.currentTarget.value })}
                />
              </label>
            ))}
          </fieldset>
        )}
        <Changes changed={changed} set={setChanged} resources={told.resources} limits={told.limits} />
        {seen && (
          <>
            {seen.notes.map((note) => (
              <p key={note} class="muted">
                {note}
              </p>
            ))}
            <pre class="evidence">{seen.script}</pre>
          </>
        )}
        <Wrong wrong={wrong} />
        <footer>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="button" disabled={busy} onClick={() => void ask(true)}>
            Show the job script
          </button>
          <button type="submit" class="primary" disabled={busy}>
            {from ? "Branch" : "Clone"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
