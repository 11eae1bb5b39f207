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
      say("The notes are saved");
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
        aria-label={`${text ? "Edit" : "Write"} notes of ${name}`}
        onClick={() => setDraft(text)}
      >
        {text ? "Edit" : "Write"}
      </button>
      {draft !== null && (
        <Dialog title={`Notes of ${name}`} close={() => setDraft(null)}>
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
              placeholder="What is asked here, and what was found?"
              value={draft}
              onInput={(event) => setDraft(event.currentTarget.value)}
            />
            <footer>
              <button type="button" onClick={() => setDraft(null)}>
                Leave it
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
