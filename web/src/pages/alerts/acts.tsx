/** What can be done with a channel or a rule in its row: edit it, and delete it after a question. */
import { complain, say } from "../../parts/toast";

type Props = {
  /** "channel" or "rule". */
  kind: string;
  name: string;
  /** What deleting it does not touch. */
  rest: string;
  edit: () => void;
  drop: () => Promise<unknown>;
  changed: () => void;
};

export function EditAndDelete({ kind, name, rest, edit, drop, changed }: Props) {
  const ask = async () => {
    if (!window.confirm(`Delete the ${kind} ${name}? ${rest}`)) return;
    try {
      await drop();
      say(`The ${kind} ${name} is deleted`);
      changed();
    } catch (error) {
      complain(error);
    }
  };
  return (
    <>
      <button type="button" class="quiet" aria-label={`Edit ${name}`} onClick={edit}>
        Edit
      </button>
      <button type="button" class="quiet danger" aria-label={`Delete ${name}`} onClick={() => void ask()}>
        Delete
      </button>
    </>
  );
}
