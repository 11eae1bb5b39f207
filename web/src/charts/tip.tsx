/** What the pointer reads: every run at that place, highest first. */
import type { Signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { duration, num, stamp, whole } from "../format";
import { type Axis, axisName } from "./axis";
import type { Named } from "./chart";
import type { Look } from "./paint";
import type { Reading } from "./read";
import type { Found } from "./shown";

const MOST = 12;

type Props = { found: Signal<Found | null>; named: readonly Named[]; axis: Axis; smooth: boolean };

export function Tip({ found, named, axis, smooth }: Props) {
  const at = useRef<HTMLDivElement>(null);
  const told = found.value;
  const shown = told && told.top >= 0 && told.readings.length ? told : null;
  useLayoutEffect(() => {
    const tip = at.current;
    if (!tip || !shown) return;
    const plot = tip.parentElement?.querySelector<HTMLElement>(".u-over");
    if (!plot || !tip.parentElement) return;
    const from = plot.getBoundingClientRect().left - tip.parentElement.getBoundingClientRect().left;
    const right = shown.left < plot.clientWidth / 2;
    const left = from + shown.left + (right ? 14 : -14 - tip.offsetWidth);
    const most = tip.parentElement.clientWidth - tip.offsetWidth;
    tip.style.transform = `translate(${Math.round(Math.max(0, Math.min(left, most)))}px, 8px)`;
  });
  if (!shown) return null;
  const { readings, closest } = shown;
  const first = shownFrom(readings, closest);
  const rows = readings.slice(first, first + MOST);
  const byId = new Map(named.map((one) => [one.id, one]));
  return (
    <div ref={at} class="tip" aria-hidden="true">
      <header>
        <span>{axisName(axis)}</span> <b>{placeOf(shown.x, axis)}</b>
      </header>
      {first > 0 && <small>{first} above</small>}
      <table>
        <tbody>
          {rows.map((reading) => {
            const one = byId.get(reading.id);
            return (
              one && (
                <tr key={reading.id} class={reading.id === closest && readings.length > 1 ? "front" : undefined}>
                  <td>
                    <Swatch look={one.look} />
                  </td>
                  {named.length > 1 && <td class="clip">{one.name}</td>}
                  <td class="value">{num(reading.smooth)}</td>
                  <td class="more">{more(reading, smooth)}</td>
                </tr>
              )
            );
          })}
        </tbody>
      </table>
      {readings.length > first + MOST && <small>{readings.length - first - MOST} below</small>}
    </div>
  );
}

/** Which rows show: those around the run in front. */
function shownFrom(readings: readonly Reading[], closest: string | null): number {
  const at = Math.max(
    0,
    readings.findIndex(({ id }) => id === closest),
  );
  return Math.max(0, Math.min(at - Math.floor(MOST / 2), readings.length - MOST));
}

function more(reading: Reading, smooth: boolean): string {
  if (reading.low !== reading.high) return `${num(reading.low, 3)} … ${num(reading.high, 3)}`;
  return smooth && reading.value !== reading.smooth ? num(reading.value, 4) : "";
}

export function placeOf(x: number, axis: Axis): string {
  if (axis === "step") return whole(x);
  if (axis === "relative") return duration(x);
  return axis === "wall" ? stamp(x) : num(x);
}

/** A piece of the line as it is drawn: colour and dash. */
export function Swatch({ look }: { look: Look }) {
  return (
    <svg class="swatch" width="20" height="8" aria-hidden="true">
      <path d="M1 4h18" stroke={look.colour} stroke-width="2.5" stroke-dasharray={look.dash.join(" ") || undefined} />
    </svg>
  );
}
