/** One axis of parallel coordinates, to brush by hand or by keys. */
import { useRef } from "preact/hooks";
import type { Brush, Scale } from "./scale";

type Props = {
  name: string;
  scale: Scale;
  x: number;
  top: number;
  height: number;
  brush: Brush | null;
  set: (brush: Brush | null) => void;
  /** The last one: its name ends where it stands, or it would leave the page. */
  end: boolean;
  /** Axes stand close: every other name is a row higher. */
  raised: boolean;
};

export function AxisOf({ name, scale, x, top, height, brush, set, end, raised }: Props) {
  const start = useRef<number | null>(null);
  const shareAt = (event: PointerEvent) => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    return Math.max(0, Math.min(1, 1 - (event.clientY - box.top) / box.height));
  };
  const pressed = (event: KeyboardEvent) => {
    const now = brush ?? ([0, 1] as const);
    const by = { ArrowUp: 0.1, ArrowDown: -0.1 }[event.key];
    if (event.key === "Escape" || event.key === "Delete") set(null);
    else if (by === undefined) return;
    else {
      const next: Brush = event.shiftKey ? [now[0], within(now[1] + by)] : [within(now[0] + by), now[1]];
      set(next[0] < next[1] ? next : null);
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <g class="axis">
      <text x={x} y={top - (raised ? 32 : 18)} text-anchor={end ? "end" : "middle"} class="name">
        {name.length > 22 ? `${name.slice(0, 21)}…` : name}
        <title>{name}</title>
      </text>
      <line x1={x} x2={x} y1={top} y2={top + height} />
      {apart(scale.ticks).map(({ at, text }) => (
        <text key={text} x={x + 7} y={top + (1 - at) * height + 4} text-anchor="start">
          {text.length > 14 ? `${text.slice(0, 13)}…` : text}
        </text>
      ))}
      {brush && (
        <rect
          class="brush"
          x={x - 7}
          width={14}
          y={top + (1 - brush[1]) * height}
          height={(brush[1] - brush[0]) * height}
          rx={3}
        />
      )}
      <rect
        class="grip"
        x={x - 14}
        y={top}
        width={28}
        height={height}
        role="slider"
        tabindex={0}
        aria-label={`${name}: arrow keys move the lower end, with shift the upper; escape clears`}
        aria-orientation="vertical"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round((brush?.[0] ?? 0) * 100)}
        aria-valuetext={brush ? `from ${Math.round(brush[0] * 100)} to ${Math.round(brush[1] * 100)} percent` : "all"}
        onKeyDown={pressed}
        onPointerDown={(event) => {
          start.current = shareAt(event);
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          if (start.current === null) return;
          const now = shareAt(event);
          if (Math.abs(now - start.current) > 0.01) set([Math.min(now, start.current), Math.max(now, start.current)]);
        }}
        onPointerUp={(event) => {
          if (start.current !== null && Math.abs(shareAt(event) - start.current) <= 0.01) set(null);
          start.current = null;
        }}
        onDblClick={() => set(null)}
      />
    </g>
  );
}

function within(share: number): number {
  return Math.max(0, Math.min(1, Math.round(share * 1000) / 1000));
}

/** Ticks that are not written over each other. */
function apart(ticks: Scale["ticks"]): Scale["ticks"] {
  const kept: { at: number; text: string }[] = [];
  for (const tick of ticks) if (kept.every(({ at }) => Math.abs(at - tick.at) > 0.04)) kept.push(tick);
  return kept;
}
