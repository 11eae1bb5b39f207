/** What a plot shows, and what it tells. Pure. */
import type { Window } from "./axis";
import type { Drawn } from "./curve";
import type { Look } from "./paint";
import type { Reading } from "./read";

export type Shown = {
  curves: readonly Drawn[];
  looks: ReadonlyMap<string, Look>;
  smooth: boolean;
  calm: boolean;
  /** What is zoomed into; null: all. */
  x: Window | null;
  y: Window | null;
  focus: string | null;
  /** Whether boundaries of legs are drawn over the whole height. */
  legs: boolean;
};
export type Told = {
  /** While a hand moves the window, and where it rests (null: all). */
  moving: (window: Window) => void;
  zoom: (x: Window | null, y: Window | null | undefined) => void;
  /** The pointer is over a place, or has left. */
  hover: (x: number | null) => void;
  read: (found: Found | null) => void;
};
export type Found = { x: number; left: number; top: number; readings: Reading[]; closest: string | null };

/** Whether two would be drawn the same: drawing is what costs. */
export function alike(one: Shown, other: Shown): boolean {
  if (one.curves.length === 0 || one.curves.length !== other.curves.length) return false;
  const curves = one.curves.every((curve, at) => {
    const next = other.curves[at] as Drawn;
    const [look, will] = [one.looks.get(curve.id), other.looks.get(curve.id)];
    return curve === next && look?.colour === will?.colour && look?.dash === will?.dash;
  });
  const window = (a: Window | null, b: Window | null) => a?.[0] === b?.[0] && a?.[1] === b?.[1];
  const flags =
    one.smooth === other.smooth && one.calm === other.calm && one.legs === other.legs && one.focus === other.focus;
  return curves && flags && window(one.x, other.x) && window(one.y, other.y);
}
