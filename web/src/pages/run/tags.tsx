/** A run's tags: seen, added, taken away. */
import { useState } from "preact/hooks";
import { post, remove } from "../../api";
import { Icon } from "../../parts/icon";
import { complain, say } from "../../parts/toast";
import { type Overview, useRun } from "./feed";

const OWN = /^(onward|mlflow)\./; // what programs write for themselves

export function Tags({ told }: { told: Overview }) {
  const { again } = useRun();
  const [text, setText] = useState("");
  const id = told.run.id;
  const tags = Object.entries(told.run.tags ?? {}).filter(([key]) => !OWN.test(key));
  const put = async (key: string, value: string) => {
    try {
      await post("/api/v1/runs/{run_id}/tags", { path: { run_id: id }, body: { tags: { [key]: value } } });
      setText("");
      again();
    } catch (error) {
      complain(error);
    }
  };
  const drop = async (key: string, value: string) => {
    try {
      await remove("/api/v1/runs/{run_id}/tags/{key}", { path: { run_id: id, key } });
      say(`Tag ${key} removed`, { undo: () => void put(key, value) });
      again();
    } catch (error) {
      complain(error);
    }
  };
  return (
    <>
      <ul class="run-tags">
        {tags.map(([key, value]) => (
          <li key={key} class="tag">
            <bdi>{value ? `${key}: ${value}` : key}</bdi>
            <button type="button" class="quiet" aria-label={`Remove tag ${key}`} onClick={() => void drop(key, value)}>
              <Icon name="close" />
            </button>
          </li>
        ))}
        {!tags.length && <li class="muted">No tags yet.</li>}
      </ul>
      <form
        class="run-add"
        onSubmit={(event) => {
          event.preventDefault();
          const [key = "", ...rest] = text.split(":");
          if (key.trim()) void put(key.trim(), rest.join(":").trim());
        }}
      >
        <input
          type="text"
          aria-label="New tag"
          placeholder="tag, or tag: value"
          maxLength={8000}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit" disabled={!text.split(":")[0]?.trim()}>
          Add
        </button>
      </form>
    </>
  );
}
