/** A text to be copied: shown, and taken by one press. */
import { Icon } from "../../parts/icon";
import { complain, say } from "../../parts/toast";

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    if (!byHand(text))
      return complain(new Error("this browser does not allow copying: select the text and copy it yourself"));
  }
  say(`${what} copied`);
}

/** Browsers give the clipboard to secure pages alone; over plain HTTP the old way still works. */
function byHand(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "hidden";
  const before = document.activeElement;
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return done;
}

export function Copy({ text, what }: { text: string; what: string }) {
  return (
    <button
      type="button"
      class="quiet icon"
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={() => void copy(text, what)}
    >
      <Icon name="copy" />
    </button>
  );
}

/** A line of code and the button that copies it. */
export function Line({ text, what }: { text: string; what: string }) {
  return (
    <span class="copy-line">
      <code>
        <bdi>{text}</bdi>
      </code>
      <Copy text={text} what={what} />
    </span>
  );
}
