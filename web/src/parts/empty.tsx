/** Nothing to show, and why, and what next. */
import type { ComponentChildren } from "preact";

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <section class="empty" role="status">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
    </section>
  );
}
