/** What may be wider than the screen: it scrolls by itself, by keys too, and has a name. */
import type { ComponentChildren } from "preact";

export function Sideways({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so do keys
    <section class="scroll-x" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
