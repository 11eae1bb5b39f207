/** Notes that people leave on a run. */
import { useState } from "preact/hooks";
import { get, post, remove } from "../../api";
import { ago, stamp } from "../../format";
import { Icon } from "../../parts/icon";
import { useNow } from "../../parts/stale";
import { complain, say } from "../../parts/toast";
import { useReading } from "./feed";

export function Notes({ id }: { id: string }) {
  const [text, setText] = useState("");
  const now = useNow(30);
  const { data, again } = useReading(id, `notes ${id}`, (signal) =>
    get("/api/v1/runs/{run_id}/notes", { path: { run_id: id }, signal }),
  );
  const add = async (words: string) => {
    try {
      await post("/api/v1/runs/{run_id}/notes", { path: { run_id: id }, body: { text: words } });
      setText("");
      again();
    } catch (error) {
      complain(error);
    }
  };
  const drop = async (note: number, words: string) => {
    try {
      await remove("/api/v1/runs/{run_id}/notes/{note}", { path: { run_id: id, note } });
      say("Note deleted", { undo: () => void add(words) });
      again();
    } catch (error) {
      complain(error);
    }
  };
  return (
    <>
      <ul class="run-notes">
        {data?.notes.map((note) => (
          <li key={note.id}>
            <p>
              <bdi>{note.text}</bdi>
            </p>
            <small title={stamp(note.at)}>
              <bdi>{note.author}</bdi>, {ago(note.at, now)}
            </small>
            <button
              type="button"
              class="quiet icon"
              aria-label="Delete this note"
              onClick={() => void drop(note.id, note.text)}
            >
              <Icon name="close" />
            </button>
          </li>
        ))}
        {data && !data.notes.length && <li class="muted">No notes yet.</li>}
      </ul>
      <form
        class="run-add"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim()) void add(text.trim());
        }}
      >
        <textarea
          rows={2}
          aria-label="New note"
          placeholder="Add a note"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && text.trim()) void add(text.trim());
          }}
        />
        <button type="submit" disabled={!text.trim()}>
          Add note
        </button>
      </form>
    </>
  );
}
