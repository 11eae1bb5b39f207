/** The lines of an open log, scrolled: more is read before an end is reached, and what is read moves nothing that is looked at. */
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Book } from "./book";
import type { LogLine } from "./lines";
import { Row } from "./row";

const NEAR = 1500; // px from an end
const REST = 250; // ms after which a scroll has come to rest

type Props = {
  book: Book;
  /** Changes with every change of the book. */
  turn: number;
  find: string;
  wrap: boolean;
  /** The line that stands out. */
  mark: number | null;
  /** Stay at the end, whatever comes. */
  follow: boolean;
  /** Where to go, once for each number: a byte, or null for the end. */
  goal: { number: number; at: number | null };
  /** The first line in view, and whether the end is. Only after a person has scrolled. */
  onRest: (at: number, end: boolean) => void;
  /** The same, at once. */
  onSeen: (at: number) => void;
};

type Anchor = { at: number; top: number };

export function Scroller(props: Props) {
  const { book, turn, find, wrap, mark, follow, goal, onRest, onSeen } = props;
  const box = useRef<HTMLDivElement>(null);
  const anchor = useRef<Anchor | null>(null);
  const reached = useRef(-1);
  const byHand = useRef(false);
  const away = useRef(false); // scrolled from the end by hand, which is not known outside before it rests
  const resting = useRef<ReturnType<typeof setTimeout>>(undefined);
  const made = useRef(new WeakMap<LogLine, { key: string; node: VNode }>());

  useLayoutEffect(() => {
    const at = box.current;
    if (!at || book.fresh) return;
    if (reached.current !== goal.number) {
      reached.current = goal.number;
      if (goal.at === null) at.scrollTop = at.scrollHeight;
      else {
        const line = lineAt(at, goal.at);
        if (line) at.scrollTop = line.offsetTop - at.clientHeight / 3;
      }
    } else if (follow && !away.current) at.scrollTop = at.scrollHeight;
    else if (anchor.current) {
      const line = at.querySelector<HTMLElement>(`[data-at="${anchor.current.at}"]`);
      if (line) at.scrollTop = line.offsetTop - anchor.current.top;
    }
    look();
  }, [turn, goal.number, wrap, follow]);

  const look = () => {
    const at = box.current;
    if (!at) return;
    const first = firstSeen(at);
    if (first) {
      anchor.current = { at: Number(first.dataset.at), top: first.offsetTop - at.scrollTop };
      onSeen(anchor.current.at);
    }
    if (at.scrollTop < NEAR) void book.more("up");
    if (at.scrollTop + at.clientHeight > at.scrollHeight - NEAR) void book.more("down");
  };
  const rest = () => {
    const at = box.current;
    if (!at || !byHand.current || !anchor.current) return;
    byHand.current = away.current = false;
    onRest(anchor.current.at, book.atEnd && at.scrollTop + at.clientHeight >= at.scrollHeight - 4);
  };
  useEffect(() => () => clearTimeout(resting.current), []);
  useEffect(() => {
    const at = box.current;
    if (!at) return;
    const watch = new ResizeObserver(() => {
      if (follow) at.scrollTop = at.scrollHeight;
    });
    watch.observe(at);
    return () => watch.disconnect();
  }, [follow]);
  const touched = () => {
    byHand.current = true;
  };
  return (
    <div
      ref={box}
      class={wrap ? "log-box wrap" : "log-box"}
      role="log"
      aria-label="Lines of the log"
      aria-live="off"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so do keys
      tabIndex={0}
      onWheel={touched}
      onTouchMove={touched}
      onPointerDown={touched}
      onKeyDown={(event) => {
        if (/^(Page|Arrow|Home|End| )/.test(event.key)) touched();
      }}
      onScroll={(event) => {
        const at = event.currentTarget;
        away.current = byHand.current && at.scrollTop + at.clientHeight < at.scrollHeight - 4;
        look();
        clearTimeout(resting.current);
        resting.current = setTimeout(rest, REST);
      }}
    >
      <pre class="log-lines">
        {book.lines.map((line) => {
          const key = `${find} ${line.at === mark}`;
          const before = made.current.get(line);
          if (before?.key === key) return before.node;
          const node = <Row key={line.at} line={line} find={find} on={line.at === mark} />;
          made.current.set(line, { key, node });
          return node;
        })}
      </pre>
    </div>
  );
}

function firstSeen(box: HTMLElement): HTMLElement | null {
  const lines = box.querySelectorAll<HTMLElement>(".log-line");
  let low = 0;
  let high = lines.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    const line = lines[middle] as HTMLElement;
    if (line.offsetTop + line.offsetHeight <= box.scrollTop) low = middle + 1;
    else high = middle;
  }
  return lines[low] ?? null;
}

/** The line that holds a byte. */
function lineAt(box: HTMLElement, at: number): HTMLElement | null {
  let found: HTMLElement | null = null;
  for (const line of box.querySelectorAll<HTMLElement>(".log-line")) {
    if (Number(line.dataset.at) > at) break;
    found = line;
  }
  return found;
}
