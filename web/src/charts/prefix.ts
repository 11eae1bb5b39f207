/** Metrics by the first part of their keys. Pure. */
export type Section = { name: string; keys: readonly string[] };

export const PINNED = "Pinned";
export const PLAIN = "Metrics";
const SYSTEM = "system";

export function prefixOf(key: string): string {
  const cut = key.indexOf("/");
  return cut > 0 ? key.slice(0, cut) : PLAIN;
}

const FEW = 6;

/** Few are one section. Else pinned ones first, then those without a prefix, then by prefix; the machine's last. A pinned key is in its own section too. */
export function sections(keys: readonly string[], pins: readonly string[] = []): Section[] {
  if (keys.length > 0 && keys.length <= FEW && !pins.length) return [{ name: PLAIN, keys }];
  const found = new Map<string, string[]>();
  for (const key of keys) {
    const name = prefixOf(key);
    const of = found.get(name);
    if (of) of.push(key);
    else found.set(name, [key]);
  }
  const rank = (name: string) => (name === PLAIN ? 0 : name === SYSTEM ? 2 : 1);
  const made = [...found].map(([name, of]) => ({ name, keys: of }));
  made.sort((one, other) => rank(one.name) - rank(other.name) || (one.name < other.name ? -1 : 1));
  const pinned = pins.filter((key) => keys.includes(key));
  return pinned.length ? [{ name: PINNED, keys: pinned }, ...made] : made;
}

/** Which sections are open by themselves: from the first on until there are some sixty charts; never the machine's. All that a search finds are. */
export function openByItself(all: readonly Section[], searched: boolean): Set<string> {
  const open = new Set<string>();
  let charts = 0;
  for (const { name, keys } of all) {
    if (!searched && (name === SYSTEM || (charts > 0 && charts + keys.length > 60))) continue;
    charts += keys.length;
    open.add(name);
  }
  return open;
}
