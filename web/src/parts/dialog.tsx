/** A question or a form over the page. Escape and a click beside it leave it; the browser keeps the focus inside. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icon";

type Props = { title: string; close: () => void; children: ComponentChildren; wide?: boolean };

export function Dialog({ title, close, children, wide = false }: Props) {
  const at = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    at.current?.showModal();
    (at.current?.querySelector<HTMLElement>("input, textarea, .primary") ?? at.current)?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape is the browser's own way out of a dialog
    <dialog
      ref={at}
      tabIndex={-1}
      class={wide ? "dialog wide" : "dialog"}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => event.target === at.current && close()}
    >
      <div class="dialog-inside">
        <header>
          <h2>{title}</h2>
          <button type="button" class="quiet icon" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
