/** One chart: its head, the plot, what the pointer reads, and words where there is nothing to draw. */
import "uplot/dist/uPlot.min.css";
import "./charts.css";
import { effect, type Signal, useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { num, short, whole } from "../format";
import { dark } from "../theme";
import { axisName, type Window } from "./axis";
import type { Way } from "./empty";
import type { Seen } from "./export";
import { ink } from "./ink";
import type { Curves } from "./lines";
import { ChartMenu } from "./menu";
import type { Look } from "./paint";
import { Plot } from "./plot";
import { counted } from "./scale";
import type { Found } from "./shown";
import type { Sync } from "./sync";
import { DataTable } from "./table";
import { Tip } from "./tip";
import type { View } from "./view";

/** A run or a group as charts draw it. */
export type Named = { id: string; name: string; look: Look };

type Props = {
  metric: string;
  drawn: Curves;
  named: readonly Named[];
  view: View;
  sync: Sync;
  height: number;
  /** Whether legs are marked. */
  legs: boolean;
};

export function Chart({ metric, drawn, named, view, sync, height, legs }: Props) {
  const { curves } = drawn;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const found = useSignal<Found | null>(null);
  const looking = useSignal<Window | null>(null);
  const looks = useMemo(() => new Map(named.map(({ id, look }) => [id, look])), [named]);
  const names = useMemo(() => new Map(named.map(({ id, name }) => [id, name])), [named]);
  const tall = view.heights.get(metric) ?? null;
  const asTable = view.tables.includes(metric);
  const newest = useRef({ view, metric });
  newest.current = { view, metric };

  useLayoutEffect(() => {
    const at = place.current;
    if (!at || asTable) return;
    const made = new Plot(at, { width: at.clientWidth, height }, view.axis, view.logX, view.logY, {
      moving: (window) => {
        sync.moving.value = window;
      },
      zoom: (x, y) => {
        sync.moving.value = null;
        newest.current.view.zoom(x, newest.current.metric, y);
      },
      hover: (x) => {
        sync.hover.value = x === null ? null : { x, chart: metric };
      },
      read: (reading) => {
        found.value = reading;
        if (reading && reading.top >= 0) sync.focus.value = reading.closest;
        else if (!reading && sync.hover.peek() === null) sync.focus.value = null;
      },
    });
    plot.current = made;
    const watch = new ResizeObserver(() => made.resize({ width: at.clientWidth, height }));
    watch.observe(at);
    const stops = [
      effect(() => {
        const hover = sync.hover.value;
        if (hover?.chart !== metric) made.point(hover?.x ?? null);
      }),
      effect(() => made.focus(sync.focus.value)),
      effect(() => {
        const window = sync.moving.value;
        if (window) made.window(window, true);
      }),
      effect(() => {
        void dark.value;
        void ink.value;
        made.redraw();
      }),
    ];
    return () => {
      for (const stop of stops) stop();
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [metric, view.axis, view.logX, view.logY, height, asTable, sync, found]);

  useLayoutEffect(() => {
    const moving = sync.moving.peek();
    plot.current?.show({
      curves,
      looks,
      smooth: view.smooth > 0,
      calm: view.calm,
      x: moving ?? view.window,
      y: tall,
      focus: sync.focus.peek(),
      legs,
    });
    looking.value = plot.current?.looking ?? null;
  }, [
    curves,
    looks,
    view.smooth,
    view.calm,
    view.window,
    view.axis,
    view.logX,
    view.logY,
    tall,
    legs,
    height,
    asTable,
    sync,
    looking,
  ]);

  const nothing = !drawn.loading && !drawn.problem && curves.every(({ mids }) => !mids.some(Number.isFinite));
  const outside = nothing || !seenIn(curves, view, looking.value);
  const seen = (): Seen | null =>
    plot.current && {
      title: metric,
      axis: axisName(view.axis),
      curves: curves.filter(({ id }) => looks.has(id)),
      names,
      looks,
      x: plot.current.looking,
      y: plot.current.height,
      logX: view.logX,
      logY: view.logY,
      smooth: view.smooth > 0,
    };
  const empty = !drawn.loading && !drawn.problem && outside ? drawn.empty(view.window) : null;
  return (
    <figure class="chart" aria-label={metric}>
      <figcaption>
        <h3 class="clip" title={metric}>
          {metric}
        </h3>
        {named.length === 1 && <Now found={found} />}
        <Count drawn={drawn} window={looking.value} />
        <ChartMenu metric={metric} view={view} seen={seen} plot={plot} />
      </figcaption>
      {asTable ? (
        <DataTable curves={curves} named={named} axis={view.axis} window={view.window} height={height} />
      ) : (
        <div
          class="plot"
          role="application"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: the plot takes keys: it can be moved and read without a pointer
          tabIndex={0}
          aria-label={summary(metric, curves, names)}
          onKeyDown={(event) => pressed(event, plot.current, view, metric)}
          onBlur={() => plot.current?.leave()}
        >
          <div ref={place} aria-hidden="true" style={{ height: `${height}px` }} />
          {empty && <Nothing why={empty.why} ways={empty.ways} view={view} />}
          {drawn.problem && <Nothing why={`${drawn.problem.what}. ${drawn.problem.next}`} ways={[]} view={view} />}
          {drawn.loading && !curves.length && <p class="chart-wait">Reading…</p>}
          <Tip found={found} named={named} axis={view.axis} smooth={view.smooth > 0} />
        </div>
      )}
    </figure>
  );
}

function seenIn(curves: Curves["curves"], view: View, window: Window | null): boolean {
  return curves.some(({ xs, highs, mids }) =>
    mids.some((value, at) => {
      const x = xs[at] as number;
      if (!Number.isFinite(value) || (view.logY && !((highs[at] as number) > 0)) || (view.logX && !(x > 0)))
        return false;
      return view.window === null || window === null || (x >= view.window[0] && x <= view.window[1]);
    }),
  );
}

function Nothing({ why, ways, view }: { why: string; ways: readonly Way[]; view: View }) {
  const acts: Record<Way, () => void> = {
    step: () => view.setAxis("step"),
    "linear x": () => view.setLogX(false),
    "linear y": () => view.setLogY(false),
    "reset zoom": view.reset,
  };
  const names: Record<Way, string> = {
    step: "Plot against step",
    "linear x": "Linear x axis",
    "linear y": "Linear y axis",
    "reset zoom": "Reset zoom",
  };
  return (
    <div class="chart-empty" role="status">
      <p>{why}</p>
      {ways.map((way) => (
        <button key={way} type="button" onClick={acts[way]}>
          {names[way]}
        </button>
      ))}
    </div>
  );
}

/** The value at the pointer of any chart of the page, where there is one run. */
function Now({ found }: { found: Signal<Found | null> }) {
  const reading = found.value?.readings[0];
  return reading ? <output class="chart-now">{num(reading.smooth)}</output> : null;
}

/** How many points are drawn, and of how many: nothing is left out without a word. */
function Count({ drawn, window }: { drawn: Curves; window: Window | null }) {
  const curves = drawn.counted ?? drawn.curves;
  const exact = curves.every((curve) => curve.exact);
  const { drawn: places, real } = counted(curves, window ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]);
  const hidden = curves.reduce((sum, curve) => sum + curve.superseded, 0);
  const notes = [
    exact
      ? "Every point is drawn."
      : "The line shows the lowest and highest value at each pixel; zoom in to see every point.",
    hidden ? `${whole(hidden)} points that a later leg logged again are hidden.` : "",
    drawn.bads ? `${whole(drawn.bads)} values are NaN or infinite.` : "",
  ];
  if (!curves.length) return null;
  if (drawn.words) {
    return (
      <small class="chart-count" title="Means over all runs that have this metric, shown or not.">
        {drawn.words}
      </small>
    );
  }
  return (
    <small class="chart-count" title={notes.filter(Boolean).join(" ")}>
      {drawn.bads > 0 && <strong class="chart-bads">{`${short(drawn.bads)} NaN or ∞ · `}</strong>}
      {exact ? `${short(places)} ${places === 1 ? "point" : "points"}` : `${short(places)} of ${short(real)} points`}
    </small>
  );
}

function summary(metric: string, curves: Curves["curves"], names: ReadonlyMap<string, string>): string {
  const parts = curves.slice(0, 5).map(({ id, mids }) => {
    const last = mids.findLast(Number.isFinite);
    return `${names.get(id) ?? id} ends at ${num(last)}`;
  });
  return `${metric}: ${parts.join(", ")}${curves.length > 5 ? ` and ${curves.length - 5} more` : ""}. Arrow keys move, plus and minus zoom, 0 resets the zoom.`;
}

function pressed(event: KeyboardEvent, plot: Plot | null, view: View, metric: string): void {
  if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
  const acts: Record<string, () => void> = {
    ArrowLeft: () => plot.step({ move: -0.2 }),
    ArrowRight: () => plot.step({ move: 0.2 }),
    "+": () => plot.step({ scale: 0.5 }),
    "=": () => plot.step({ scale: 0.5 }),
    "-": () => plot.step({ scale: 2 }),
    "0": () => view.reset(),
    "[": () => plot.read(-0.02),
    "]": () => plot.read(0.02),
    Enter: () => view.setFull(view.full === metric ? "" : metric, { push: true }),
    t: () => view.turnTable(metric),
  };
  const act = acts[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}
