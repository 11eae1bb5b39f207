/** A run keeps its colour and dash wherever it is drawn, whatever else is shown: both follow from its id alone.
 *
 * The colours are Okabe and Ito's, told apart with every common kind of colour blindness, darker in light and lighter in
 * dark where contrast asks for it; dashes tell apart what shares a colour. */
import { computed } from "@preact/signals";
import { dark } from "./theme";

export const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#b35a93", "#b8860b", "#2a8fc9", "#6b4fbb", "#555b66"] as const;
export const DARK = ["#4ba3dd", "#f08a3c", "#2cc49a", "#dd8bc0", "#e3b340", "#7cc7f0", "#a992f0", "#aab2bf"] as const;
export const DASHES: readonly (readonly number[])[] = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

export const colours = computed<readonly string[]>(() => (dark.value ? DARK : LIGHT));

export type Look = { colour: number; dash: number };

/** FNV-1a: short, even, the same everywhere. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return value;
}

export function lookOf(id: string): Look {
  const mixed = hash(id);
  return { colour: mixed % LIGHT.length, dash: Math.floor(mixed / LIGHT.length) % DASHES.length };
}

/** The looks of runs that are drawn together: each its own where they clash, first come first served, else as `lookOf`. */
export function looksOf(ids: readonly string[]): Map<string, Look> {
  const taken = new Set<string>();
  const looks = new Map<string, Look>();
  const room = LIGHT.length * DASHES.length;
  for (const id of ids) {
    const own = lookOf(id);
    let at = own.dash * LIGHT.length + own.colour;
    for (let tried = 0; tried < room && taken.has(String(at)); tried++) at = (at + 1) % room;
    taken.add(String(at));
    looks.set(id, { colour: at % LIGHT.length, dash: Math.floor(at / LIGHT.length) });
  }
  return looks;
}

/** The CSS colour of a look, as the theme has it; read inside a component or effect, it follows the theme. */
export function colourOf(look: Look): string {
  return colours.value[look.colour] ?? "#888";
}

export function dashOf(look: Look): readonly number[] {
  return DASHES[look.dash] ?? [];
}
