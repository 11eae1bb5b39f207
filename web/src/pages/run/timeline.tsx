/** A run's timeline: waits, legs, what happened inside them, and moments; each leads to the log that tells more. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../../api";
import { shortDuration } from "../../charts/ticks";
import { stamp, when } from "../../format";
import { useNow } from "../../parts/stale";
import { go, number, useParam } from "../../url";
import { type LogPlace, logPage, runPage } from "./address";
import { useReading } from "./feed";
import "./timeline.css";
import { type Item, layout, type Told, ticks } from "./stretch";

const ZOOM = number(1);
const MOST = 64;
const TALL = 88;
const ROOM = 22; // px that a leg needs for its number
const PAD = 8;

export function Timeline({ id, over }: { id: string; over: boolean }) {
  const { data, fault } = useReading(
    id,
    `timeline ${id}`,
    (signal) => get("/api/v1/runs/{run_id}/timeline", { path: { run_id: id }, signal }),
    { every: over ? 0 : 15, pause: 4 },
  );
  if (!data) return <div class="timeline waiting">{fault && `${fault.what}. ${fault.next}`}</div>;
  if (!data.segments.length)
    return <p class="muted">This run has no jobs: timelines are shown for runs that Onward submits.</p>;
  return <Drawing id={id} told={data} over={over} />;
}

function Drawing({ id, told, over }: { id: string; told: Told; over: boolean }) {
  const [zoom, setZoom] = useParam("tzoom", ZOOM);
  const box = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState(600);
  const [current, setCurrent] = useState<string | null>(null);
  const [table, setTable] = useState(false);
  const now = useNow(over ? 3600 : 5);
  const legs = told.segments.filter(({ kind }) => kind === "leg").length;
  const width = Math.max(seen, 240, legs * (ROOM + 2)) * Math.min(MOST, Math.max(1, zoom)) - 2 * PAD;
  const items = useMemo(() => layout(told, width, now), [told, width, now]);
  const whole = Math.max(now * Number(!over), told.end);
  useLayoutEffect(() => {
    const at = box.current;
    if (!at) return;
    const watch = new ResizeObserver(() => setSeen(at.clientWidth));
    watch.observe(at);
    return () => watch.disconnect();
  }, []);
  const atEnd = useRef(true);
  useLayoutEffect(() => {
    const at = box.current;
    if (at && atEnd.current) at.scrollLeft = at.scrollWidth;
  }, [width, told]);
  const turn = (by: number) => {
    const at = box.current;
    const middle = at ? (at.scrollLeft + at.clientWidth / 2) / at.scrollWidth : 0.5;
    setZoom(Math.min(MOST, Math.max(1, zoom * by)));
    atEnd.current = middle > 0.98;
    requestAnimationFrame(() => at?.scrollTo({ left: middle * at.scrollWidth - at.clientWidth / 2 }));
  };
  const drawn = told.marks.filter(({ kind }) => kind === "checkpoint").length;
  const shown = items.find(({ key }) => key === current) ?? null;
  return (
    <div class="timeline">
      <div class="timeline-tools">
        <p class="timeline-words" aria-live="polite">
          {shown ? <Words item={shown} /> : <span class="muted">Select a part for details; open it for its log.</span>}
        </p>
        <span class="choices">
          <button type="button" aria-label="Zoom out" disabled={zoom <= 1} onClick={() => turn(0.5)}>
            −
          </button>
          <button type="button" aria-label="Zoom in" disabled={zoom >= MOST} onClick={() => turn(2)}>
            +
          </button>
        </span>
      </div>
      <div
        ref={box}
        class="timeline-box"
        onScroll={(event) => {
          const at = event.currentTarget;
          atEnd.current = at.scrollLeft + at.clientWidth > at.scrollWidth - 8;
        }}
      >
        <svg
          width={width + 2 * PAD}
          height={TALL}
          role="group"
          aria-label="Timeline; arrow keys move between its parts"
          onKeyDown={(event) => stepped(event, items, current, setCurrent, box.current)}
          onPointerLeave={() => setCurrent(null)}
        >
          <defs>
            <pattern id="waits" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect class="waits-back" width="6" height="6" />
              <rect class="waits-line" width="2" height="6" />
            </pattern>
          </defs>
          <g transform={`translate(${PAD} 0)`}>
            {ticks(told.start, whole, width).map(({ left, seconds }) => (
              <g key={seconds} class="timeline-tick" transform={`translate(${left} 0)`}>
                <line y1="0" y2="68" />
                <text y="82" text-anchor={left > width - 20 ? "end" : seconds ? "middle" : "start"}>
                  {shortDuration(seconds)}
                </text>
              </g>
            ))}
            {items.map((item, at) => (
              <Part
                key={item.key}
                id={id}
                item={item}
                tab={item.key === current || (current === null && at === 0)}
                on={item.key === current}
                look={setCurrent}
              />
            ))}
            {items.map((item) => (
              <Label key={item.key} item={item} />
            ))}
          </g>
        </svg>
      </div>
      {told.checkpoints > drawn && (
        <p class="muted timeline-few">
          {drawn.toLocaleString("en-US")} of {told.checkpoints.toLocaleString("en-US")} checkpoints are drawn.
        </p>
      )}
      <details class="timeline-table" onToggle={(event) => setTable(event.currentTarget.open)}>
        <summary>As a table</summary>
        {table && <AsTable id={id} items={items} now={now} />}
      </details>
    </div>
  );
}

function stepped(
  event: KeyboardEvent,
  items: readonly Item[],
  current: string | null,
  look: (key: string) => void,
  box: HTMLElement | null,
): void {
  const by = { ArrowRight: 1, ArrowLeft: -1, Home: -1e6, End: 1e6 }[event.key];
  if (!by) return;
  event.preventDefault();
  const at = items.findIndex(({ key }) => key === current);
  const next = items[Math.max(0, Math.min(items.length - 1, (at < 0 ? 0 : at) + by))];
  if (!next) return;
  look(next.key);
  box?.querySelector<SVGElement>(`[data-key="${CSS.escape(next.key)}"]`)?.focus();
}

function to(id: string, item: Item): string {
  return item.log ? logPage(id, item.log as LogPlace) : runPage(id, item.kind === "checkpoint" ? "checkpoints" : "");
}

type PartProps = { id: string; item: Item; tab: boolean; on: boolean; look: (key: string) => void };

function Part({ id, item, tab, on, look }: PartProps) {
  const { kind, lane, left, width, state } = item;
  return (
    <a
      href={to(id, item)}
      data-key={item.key}
      tabIndex={tab ? 0 : -1}
      class={`part ${kind} ${state} ${on ? "on" : ""}`}
      aria-label={item.words}
      onFocus={() => look(item.key)}
      onPointerEnter={() => look(item.key)}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
        event.preventDefault();
        go(to(id, item));
      }}
    >
      {lane === 0 && (
        <rect
          x={left}
          y={kind === "queue" ? 22 : 16}
          width={Math.max(2, width - 1)}
          height={kind === "queue" ? 16 : 28}
          rx="3"
        />
      )}
      {lane === 1 && <rect x={left} y="48" width={width} height="6" rx="2" />}
      {lane === 2 && (
        <>
          <rect class="reach" x={left - 6} y="54" width="12" height="16" />
          <path
            transform={`translate(${left} ${kind === "checkpoint" || kind === "missed" ? 61 : 8})`}
            d={SHAPES[kind] ?? DOT}
          />
        </>
      )}
    </a>
  );
}

/** Drawn over the links, which have names of their own. */
function Label({ item: { kind, left, width, leg, state } }: { item: Item }) {
  if (kind !== "leg" || width <= ROOM) return null;
  return (
    <text class="leg-label" x={left + 7} y="34">
      {leg}
      {width > 76 && <tspan> {HOW[state] ?? state}</tspan>}
    </text>
  );
}

/** Legs are told by a word, not by colour alone. */
const HOW: Record<string, string> = {
  ...{ running: "running", done: "done", again: "continued", time_limit: "time limit", preempted: "preempted" },
  ...{ out_of_memory: "out of memory", crashed: "crashed", node_lost: "node lost", stalled: "stalled" },
  ...{ cancelled: "cancelled", lost: "lost" },
};
const DOT = "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z";
const SHAPES: Record<string, string> = {
  checkpoint: "M0 -5 4 0 0 5 -4 0Z",
  missed: "M-3 -3 3 3M3 -3 -3 3",
  closed: "M-4 -4H4V4H-4Z",
  resume: "M-3 -4.5 4.5 0 -3 4.5Z",
  request: "M0 4 -4.5 -4H4.5Z",
  warning: "M0 -4.5 4.5 4H-4.5Z",
};

function Words({ item }: { item: Item }) {
  return (
    <>
      <bdi>{item.words}</bdi> <span class="muted">{stamp(item.start).slice(5, 19)}</span>
    </>
  );
}

function AsTable({ id, items, now }: { id: string; items: readonly Item[]; now: number }) {
  return (
    <table class="plain">
      <thead>
        <tr>
          <th>When</th>
          <th>Leg</th>
          <th>Event</th>
          <th>More</th>
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={item.key}>
            <td title={stamp(item.start)}>{when(item.start, now)}</td>
            <td>{item.leg || ""}</td>
            <td>
              <bdi>{item.words}</bdi>
            </td>
            <td>
              <a href={to(id, item)}>{item.log ? "Log" : item.kind === "checkpoint" ? "Checkpoints" : ""}</a>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function TimelineKeys() {
  const kinds = [
    ["queue", "queued"],
    ["leg", "leg"],
    ["sync", "publishing"],
    ["prepare", "setup"],
    ["stall", "no progress"],
  ];
  return (
    <span class="timeline-keys muted">
      {kinds.map(([kind, words]) => (
        <span key={kind}>
          <i class={`swatch ${kind}`} />
          {words}
        </span>
      ))}
      <span>◆ checkpoint</span>
    </span>
  );
}
