/** What can be done with one chart: make it large, pin it, see the numbers, keep it. */
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "../parts/icon";
import { csv, png, type Seen, save, svg } from "./export";
import { ink } from "./ink";
import type { Plot } from "./plot";
import { toggled, type View } from "./view";

type Props = { metric: string; view: View; seen: () => Seen | null; plot: RefObject<Plot | null> };

export function ChartMenu({ metric, view, seen, plot }: Props) {
  const at = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const outside = (event: Event) => {
      if (at.current?.open && !event.composedPath().includes(at.current)) at.current.open = false;
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, []);
  const done = (act: () => void) => () => {
    act();
    if (at.current) at.current.open = false;
  };
  const pinned = view.pins.includes(metric);
  const keep = (kind: "csv" | "svg" | "png") => {
    const now = seen();
    const made = plot.current;
    if (!now || !made) return;
    if (kind === "csv") save(`${metric}.csv`, csv(now), "text/csv");
    else if (kind === "svg") save(`${metric}.svg`, svg(now, made.ticks()), "image/svg+xml");
    else {
      const { raised, text, muted } = ink.peek();
      void png(made.canvas, now, { page: raised, text, muted }).then(
        (blob) => blob && save(`${metric}.png`, blob, "image/png"),
      );
    }
  };
  const table = view.tables.includes(metric);
  return (
    <details
      class="chart-menu"
      ref={at}
      onKeyDown={(event) => event.key === "Escape" && done(() => at.current?.querySelector("summary")?.focus())()}
    >
      <summary aria-label={`More for ${metric}`}>
        <Icon name="more" />
      </summary>
      <div class="chart-menu-list">
        <button
          type="button"
          class="quiet"
          onClick={done(() => view.setFull(view.full === metric ? "" : metric, { push: true }))}
        >
          {view.full === metric ? "Back to the grid" : "Large"} <kbd>Enter</kbd>
        </button>
        <button type="button" class="quiet" onClick={done(() => view.setPins(toggled(view.pins, metric)))}>
          {pinned ? "Unpin" : "Pin to the top"}
        </button>
        <button type="button" class="quiet" onClick={done(() => view.turnTable(metric))}>
          {table ? "As a chart" : "As a table"} <kbd>t</kbd>
        </button>
        {!table && (
          <>
            <hr />
            {(["csv", "png", "svg"] as const).map((kind) => (
              <button key={kind} type="button" class="quiet" onClick={done(() => keep(kind))}>
                {`Save as ${kind.toUpperCase()}`}
              </button>
            ))}
          </>
        )}
      </div>
    </details>
  );
}
