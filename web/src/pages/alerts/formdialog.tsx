/** The frame of the forms for a channel and a rule: new or changed, and what was wrong with it. */
import type { ComponentChildren } from "preact";
import { Dialog } from "../../parts/dialog";
import type { Fault } from "../../reading";

type Props = {
  /** "channel" or "rule". */
  kind: string;
  /** Not there yet. */
  fresh: boolean;
  fault: Fault | null;
  save: () => Promise<void>;
  close: () => void;
  children: ComponentChildren;
};

export function FormDialog({ kind, fresh, fault, save, close, children }: Props) {
  return (
    <Dialog title={fresh ? `New ${kind}` : `Edit ${kind}`} close={close}>
      <form
        class="sheet-form"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {children}
        {fault && (
          <p role="alert">
            {fault.what}
            {fault.next && ` – ${fault.next}`}
          </p>
        )}
        <footer>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary">
            {fresh ? `Create ${kind}` : "Save"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
