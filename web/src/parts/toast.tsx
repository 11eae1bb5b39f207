/** What was just done or could not be, in a corner for a while; errors stay until they are closed. */
import { signal } from "@preact/signals";
import { inWords } from "../api";
import { Icon } from "./icon";

type Toast = { id: number; what: string; next: string; bad: boolean; undo?: (() => void) | undefined };

const toasts = signal<readonly Toast[]>([]);
let counted = 0;
const SHOWN = 5000; // ms

export function say(what: string, more: { next?: string; undo?: () => void } = {}): void {
  const id = add({ what, next: more.next ?? "", bad: false, undo: more.undo });
  setTimeout(() => close(id), more.undo ? 2 * SHOWN : SHOWN);
}

/** An error, unless the call was given up on purpose. */
export function complain(error: unknown): void {
  const words = inWords(error);
  if (words) add({ ...words, bad: true });
}

function add(toast: Omit<Toast, "id">): number {
  const id = ++counted;
  toasts.value = [
    ...toasts
      .peek()
      .filter((one) => one.what !== toast.what)
      .slice(-3),
    { ...toast, id },
  ];
  return id;
}

function close(id: number): void {
  toasts.value = toasts.peek().filter((one) => one.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="log" aria-live="polite">
      {toasts.value.map(({ id, what, next, bad, undo }) => (
        <div key={id} class={bad ? "toast bad" : "toast"}>
          <p>
            {what}
            {next && <small>{next}</small>}
          </p>
          {undo && (
            <button
              type="button"
              onClick={() => {
                close(id);
                undo();
              }}
            >
              Undo
            </button>
          )}
          <button type="button" class="quiet icon" aria-label="Close" onClick={() => close(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
