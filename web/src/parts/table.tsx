/** A table of any length: only what is in view is drawn. Columns are moved and sized by mouse or keys; rows are the caller's. */
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icon";

export type TableColumn = {
  id: string;
  title: string;
  width: number;
  right?: boolean;
  sortable: boolean;
  about: string;
  /** Takes what room is left. */
  grows?: boolean;
};
export type Sorted = { id: string; down: boolean } | null;

type Props = {
  label: string;
  columns: readonly TableColumn[];
  /** Before the first column: a checkbox. */
  lead?: ComponentChildren;
  leadWidth?: number;
  lines: number;
  height: number;
  sort: Sorted;
  current: number;
  /** One line; it puts its cells into the columns of the header by itself. */
  line: (number: number) => ComponentChildren;
  inView: (first: number, last: number) => void;
  onSort: (id: string) => void;
  onMove: (id: string, by: number) => void;
  onSize: (id: string, width: number) => void;
  /** Narrow screens: lines are cards, and there is no header. */
  cards?: boolean;
  /** Where it was scrolled to when it was last left. */
  place: { top: number };
};

const BEYOND = 12; // lines drawn above and below what is seen

export function Table(props: Props) {
  const { columns, lines, height, cards = false, place, inView, leadWidth = 0 } = props;
  const at = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ first: 0, last: 40 });
  const look = () => {
    const box = at.current;
    if (!box) return;
    place.top = box.scrollTop;
    const first = Math.max(0, Math.floor(box.scrollTop / height) - BEYOND);
    const last = Math.ceil((box.scrollTop + box.clientHeight) / height) + BEYOND;
    setSeen((before) => (before.first === first && before.last === last ? before : { first, last }));
  };
  useLayoutEffect(() => {
    if (at.current) at.current.scrollTop = place.top;
    look();
  }, [place, height]);
  useEffect(() => {
    const watch = new ResizeObserver(look);
    if (at.current) watch.observe(at.current);
    return () => watch.disconnect();
  }, [height]);
  const last = Math.min(lines - 1, seen.last);
  useEffect(() => inView(seen.first, last), [seen.first, last, inView]);
  useKept(at, props.current, height, cards ? 0 : height);
  const tracks = columns.map(({ width, grows }) => (grows ? `minmax(${width}px, 1fr)` : `${width}px`)).join(" ");
  const whole = leadWidth + columns.reduce((sum, { width }) => sum + width, 0);
  const shown = [];
  for (let number = seen.first; number <= last; number++) shown.push(number);
  return (
    <div
      ref={at}
      class={cards ? "table cards" : "table"}
      role="grid"
      tabIndex={0}
      aria-label={props.label}
      aria-rowcount={lines + 1}
      aria-activedescendant={props.current >= 0 ? `line-${props.current}` : undefined}
      onScroll={look}
      style={{ "--tracks": `${leadWidth}px ${tracks}`, "--whole": `${whole}px`, "--tall": `${height}px` }}
    >
      {!cards && <Head {...props} />}
      <div class="table-body" role="rowgroup" style={{ height: `${lines * height}px` }}>
        {shown.map((number) => (
          <div
            key={number}
            id={`line-${number}`}
            class={number === props.current ? "table-line current" : "table-line"}
            style={{ transform: `translateY(${number * height}px)` }}
            role="presentation"
          >
            {props.line(number)}
          </div>
        ))}
      </div>
    </div>
  );
}

/** The line that keys are on stays in view. */
function useKept(at: RefObject<HTMLDivElement | null>, current: number, height: number, above: number): void {
  useLayoutEffect(() => {
    const box = at.current;
    if (!box || current < 0) return;
    const top = current * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height + above > box.scrollTop + box.clientHeight)
      box.scrollTop = top + height + above - box.clientHeight;
  }, [current, height]);
}

function Head({ columns, lead, sort, onSort, onMove, onSize }: Props) {
  const [dragged, setDragged] = useState("");
  return (
    <div class="table-head" role="rowgroup">
      <div class="table-row" role="row">
        <div class="cell lead" role="columnheader">
          {lead}
        </div>
        {columns.map((column, at) => {
          const sorted = sort?.id === column.id ? (sort.down ? "descending" : "ascending") : undefined;
          return (
            <div
              key={column.id}
              class={`cell ${column.right ? "right" : ""} ${dragged === column.id ? "dragged" : ""}`}
              role="columnheader"
              aria-sort={sorted}
              draggable
              onDragStart={() => setDragged(column.id)}
              onDragEnd={() => setDragged("")}
              onDragOver={(event) => event.preventDefault()}
              onDrop={() => {
                const from = columns.findIndex(({ id }) => id === dragged);
                if (from >= 0 && from !== at) onMove(dragged, at - from);
              }}
            >
              <button
                type="button"
                class="quiet title"
                title={`${column.about}. Shift + arrows move the column, Alt + arrows resize it.`}
                aria-disabled={!column.sortable}
                onClick={() => column.sortable && onSort(column.id)}
                onKeyDown={(event) => {
                  const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
                  if (!step || !(event.shiftKey || event.altKey)) return;
                  event.preventDefault();
                  if (event.shiftKey) onMove(column.id, step);
                  else onSize(column.id, column.width + 16 * step);
                }}
              >
                <span class="clip">{column.title}</span>
                {sorted && <Icon name={sort?.down ? "down" : "up"} />}
              </button>
              <Handle width={column.width} size={(width) => onSize(column.id, width)} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Handle({ width, size }: { width: number; size: (width: number) => void }) {
  const began = useRef<{ x: number; width: number } | null>(null);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a handle for the mouse; Alt and arrows on the title do the same
    <span
      class="handle"
      draggable
      onDragStart={(event) => {
        event.preventDefault();
        event.stopPropagation();
      }}
      onPointerDown={(event) => {
        event.preventDefault();
        const cell = event.currentTarget.parentElement;
        began.current = { x: event.clientX, width: cell?.offsetWidth ?? width };
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        if (began.current) size(began.current.width + event.clientX - began.current.x);
      }}
      onPointerUp={() => {
        began.current = null;
      }}
    />
  );
}
