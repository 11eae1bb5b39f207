/** What one should know of an experiment; kept where MLflow keeps its description, so that its clients see it too. */
import { useState } from "preact/hooks";
import { patch } from "../../api";
import { Dialog } from "../../parts/dialog";
import { complain, say } from "../../parts/toast";

type Props = { id: number; name: string; text: string; saved: () => void };

export function Note({ id, name, text, saved }: Props) {
  const [draft, setDraft] = useState<string | null>(null);
  const save = async (words: string) => {
    try {
      await patch("/api/v1/experiments/{experiment}", {
        path: { experiment: id },
        body: { tags: { "mlflow.note.content": words } },
      });
      say("Notes saved");
      setDraft(null);
      saved();
    } catch (error) {
      complain(error);
    }
  };
  return (
    <>
      {text && (
        <span class="sheet-note">
          <bdi>{text}</bdi>
        </span>
      )}
      <button
        type="button"
        class="quiet"
        aria-label={`${text ? "Edit" : "Add"} notes on ${name}`}
        onClick={() => setDraft(text)}
      >
        {text ? "Edit" : "Add"}
      </button>
      {draft !== null && (
        <Dialog title={`Notes on ${name}`} close={() => setDraft(null)}>
          <form
            class="sheet-form"
            onSubmit={(event) => {
              event.preventDefault();
              void save(draft.trim());
            }}
          >
            <textarea
              rows={8}
              maxLength={8000}
              aria-label="Notes"
              placeholder="What is the question, and what did you find?"
              value={draft}
              onInput={(event) => setDraft(event.currentTarget.value)}
            />
            <footer>
              <button type="button" onClick={() => setDraft(null)}>
                Cancel
              </button>
              <button type="submit" class="primary">
                Save
              </button>
            </footer>
          </form>
        </Dialog>
      )}
    </>
  );
}
