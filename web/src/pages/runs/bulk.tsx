/** What can be done with the runs that are selected: compare, tag, stop, archive. */
import { useState } from "preact/hooks";
import { patch, post } from "../../api";
import { useKeys } from "../../keys";
import { Dialog } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { complain, say } from "../../parts/toast";
import { go, href } from "../../url";
import type { Row, Rows } from "./rows";

const AT_ONCE = 6;
const ENDED = new Set(["finished", "failed", "cancelled"]);
type Props = {
  selected: ReadonlySet<string>;
  rows: Rows;
  archived: boolean;
  clear: () => void;
  changed: (ids: ReadonlySet<string>) => void;
};

export function Bulk({ selected, rows, archived, clear, changed }: Props) {
  const [asking, setAsking] = useState<"" | "stop" | "tag">("");
  const ids = [...selected];
  const known = ids.map((id) => rows.row(id)).filter((row): row is Row => row !== null);
  const going = known.filter((row) => !ENDED.has(row.state));
  const compare = () => go(href("/compare", { runs: ids.join(",") }));
  const archive = async (to: boolean) => {
    const done = await each(ids, (id) =>
      patch("/api/v1/runs/{run_id}", { path: { run_id: id }, body: { archived: to } }),
    );
    if (!done.length) return;
    say(`${count(done.length)} ${to ? "archived" : "back in the list"}`, to ? { undo: () => void archive(false) } : {});
    clear();
    changed(new Set(done));
  };
  useKeys("Selected runs", [
    { keys: "c", does: "Compare", act: compare },
    { keys: "t", does: "Tag", act: () => setAsking("tag") },
    { keys: "s", does: "Stop after a checkpoint", act: () => going.length && setAsking("stop") },
    { keys: "e", does: archived ? "Unarchive" : "Archive", act: () => void archive(!archived) },
    { keys: "Escape", does: "Clear selection", act: clear },
  ]);
  return (
    <div class="bulk" role="toolbar" aria-label="Selected runs">
      <strong>{ids.length} selected</strong>
      <button type="button" onClick={compare}>
        <Icon name="compare" /> Compare
      </button>
      <button type="button" onClick={() => setAsking("tag")}>
        <Icon name="tag" /> Tag
      </button>
      <button type="button" disabled={!going.length} onClick={() => setAsking("stop")}>
        <Icon name="stop" /> Stop
      </button>
      <button type="button" onClick={() => void archive(!archived)}>
        <Icon name="archive" /> {archived ? "Unarchive" : "Archive"}
      </button>
      <button type="button" class="quiet icon" aria-label="Clear selection" onClick={clear}>
        <Icon name="close" />
      </button>
      {asking === "stop" && <Stop runs={going} close={() => setAsking("")} changed={changed} />}
      {asking === "tag" && <Tag ids={ids} close={() => setAsking("")} changed={changed} />}
    </div>
  );
}

function Stop({ runs, close, changed }: { runs: readonly Row[]; close: () => void; changed: Props["changed"] }) {
  const act = async (how: "stop" | "cancel") => {
    close();
    const path = how === "stop" ? "/api/v1/runs/{run_id}/stop" : "/api/v1/runs/{run_id}/cancel";
    const done = await each(
      runs.map(({ id }) => id),
      (id) => post(path, { path: { run_id: id } }),
    );
    if (done.length)
      say(how === "stop" ? `${count(done.length)} will save and stop` : `${count(done.length)} cancelled`);
    changed(new Set(done));
  };
  return (
    <Dialog title={`Stop ${count(runs.length)}?`} close={close}>
      <ul class="names">
        {runs.slice(0, 8).map((row) => (
          <li key={row.id} class="clip">
            <bdi>{row.name || row.id}</bdi>
          </li>
        ))}
        {runs.length > 8 && <li class="muted">and {runs.length - 8} more</li>}
      </ul>
      <p class="muted">
        If you stop a run after a checkpoint, it can resume where it was. If you cancel it, it loses the work since its
        last one.
      </p>
      <footer>
        <button type="button" onClick={close}>
          Keep running
        </button>
        <button type="button" class="danger" onClick={() => void act("cancel")}>
          Cancel now
        </button>
        <button type="button" class="primary" onClick={() => void act("stop")}>
          Stop after a checkpoint
        </button>
      </footer>
    </Dialog>
  );
}

function Tag({ ids, close, changed }: { ids: readonly string[]; close: () => void; changed: Props["changed"] }) {
  const [key, setKey] = useState("");
  const [value, setValue] = useState("");
  const act = async (event: Event) => {
    event.preventDefault();
    close();
    const tags = { [key.trim()]: value.trim() };
    const done = await each(ids, (id) => post("/api/v1/runs/{run_id}/tags", { path: { run_id: id }, body: { tags } }));
    if (done.length) say(`${count(done.length)} tagged ${key.trim()}`);
    changed(new Set(done));
  };
  return (
    <Dialog title={`Tag ${count(ids.length)}`} close={close}>
      <form class="tag-form" onSubmit={act}>
        <label>
          Tag
          <input
            type="text"
            required
            maxLength={250}
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        <label>
          Value (optional)
          <input type="text" maxLength={8000} value={value} onInput={(event) => setValue(event.currentTarget.value)} />
        </label>
        <footer>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={!key.trim()}>
            Tag
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** Do the same with each, a few at once; those it was done with. What went wrong is told. */
async function each(ids: readonly string[], act: (id: string) => Promise<unknown>): Promise<string[]> {
  const done: string[] = [];
  const rest = [...ids];
  const worker = async () => {
    for (let id = rest.shift(); id !== undefined; id = rest.shift()) {
      try {
        await act(id);
        done.push(id);
      } catch (error) {
        complain(error);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return done;
}

function count(runs: number): string {
  return runs === 1 ? "1 run" : `${runs} runs`;
}
