/** A button that opens a panel under it. A click elsewhere or Escape closes it, and the focus goes back. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

type Props = {
  label: ComponentChildren;
  title: string;
  class?: string;
  disabled?: boolean;
  /** Which edge of the button the panel keeps to. */
  end?: boolean;
  children: (close: () => void) => ComponentChildren;
};

export function Menu({ label, title, class: style = "", disabled = false, end = false, children }: Props) {
  const [open, setOpen] = useState(false);
  const at = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!open) return;
    const elsewhere = (event: Event) => {
      if (event.target instanceof Node && !at.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener("pointerdown", elsewhere);
    at.current?.querySelector<HTMLElement>(".panel input, .panel button, .panel a")?.focus();
    return () => document.removeEventListener("pointerdown", elsewhere);
  }, [open]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape closes the panel from anywhere inside it
    <div
      class="menu"
      ref={at}
      onKeyDown={(event) => {
        if (open && event.key === "Escape") {
          event.stopPropagation();
          close();
        }
      }}
    >
      <button
        ref={button}
        type="button"
        class={style}
        title={title}
        aria-haspopup="true"
        aria-expanded={open}
        disabled={disabled}
        onClick={() => setOpen(!open)}
      >
        {label}
      </button>
      {open && (
        <div class={end ? "panel end" : "panel"} role="group" aria-label={title}>
          {children(close)}
        </div>
      )}
    </div>
  );
}
