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

/** The looks of runs that are drawn together: each keeps its own colour until another has it; then it takes the next that is least used.
 * Dashes begin where colours end, so that few lines are whole and all differ. Whoever comes later changes nobody's look. */
export function looksOf(ids: readonly string[]): Map<string, Look> {
  const uses = new Array<number>(LIGHT.length).fill(0);
  const looks = new Map<string, Look>();
  for (const id of ids) {
    const own = lookOf(id).colour;
    let colour = own;
    for (let by = 1; by < LIGHT.length; by++) {
      const next = (own + by) % LIGHT.length;
      if ((uses[next] as number) < (uses[colour] as number)) colour = next;
    }
    looks.set(id, { colour, dash: (uses[colour] as number) % DASHES.length });
    uses[colour] = (uses[colour] as number) + 1;
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
