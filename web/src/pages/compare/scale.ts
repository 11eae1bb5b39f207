/** Values of any kind on a line: numbers evenly or by powers of ten, words side by side. Pure. */
export type Scale = {
  kind: "number" | "log" | "words";
  ticks: readonly { at: number; text: string }[];
  /** From 0 to 1; null for what has no place. */
  place: (value: string | number | null) => number | null;
};

const numeric = (value: string | number | null): number | null => {
  if (value === null || value === "") return null;
  const number = typeof value === "number" ? value : Number(value);
  return Number.isFinite(number) ? number : null;
};

export function scaleOf(values: readonly (string | number | null)[]): Scale {
  const known = values.filter((value) => value !== null);
  const numbers = known.map(numeric).filter((value) => value !== null);
  if (numbers.length < known.length || !numbers.length) return words(known.map(String));
  const low = Math.min(...numbers);
  const high = Math.max(...numbers);
  const wide = low > 0 && high / low >= 100;
  if (low === high)
    return {
      kind: "number",
      ticks: [{ at: 0.5, text: short(low) }],
      place: (value) => (numeric(value) === null ? null : 0.5),
    };
  const into = wide ? Math.log : (value: number) => value;
  const back = wide ? Math.exp : (value: number) => value;
  const from = into(low);
  const length = into(high) - from;
  const distinct = [...new Set(numbers)].sort((one, other) => one - other);
  const at = (value: number) => (into(value) - from) / length;
  const ticks = distinct.length <= 6 ? distinct : [0, 0.25, 0.5, 0.75, 1].map((share) => back(from + share * length));
  return {
    kind: wide ? "log" : "number",
    ticks: ticks.map((value) => ({ at: at(value), text: short(value) })),
    place: (value) => {
      const number = numeric(value);
      return number === null || (wide && number <= 0) ? null : at(number);
    },
  };
}

function words(known: readonly string[]): Scale {
  const all = [...new Set(known)].sort();
  const at = (value: string) => (all.length > 1 ? all.indexOf(value) / (all.length - 1) : 0.5);
  const every = Math.ceil(all.length / 12);
  return {
    kind: "words",
    ticks: all.filter((_, index) => index % every === 0).map((text) => ({ at: at(text), text })),
    place: (value) => (value === null || !all.includes(String(value)) ? null : at(String(value))),
  };
}

export function short(value: number): string {
  const size = Math.abs(value);
  if (value !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(1).replace(".0e", "e").replace("e+", "e");
  return String(Number(value.toPrecision(4)));
}

export type Brush = readonly [number, number];

/** Whether a run passes every brush; one without a value passes none. */
export function passes(places: ReadonlyMap<string, number | null>, brushes: ReadonlyMap<string, Brush>): boolean {
  for (const [axis, [low, high]] of brushes) {
    const at = places.get(axis) ?? null;
    if (at === null || at < low - 1e-9 || at > high + 1e-9) return false;
  }
  return true;
}

/** How strongly two rows go together, -1 to 1; null with fewer than three pairs or where one does not vary. */
export function correlation(xs: readonly (number | null)[], ys: readonly (number | null)[]): number | null {
  const pairs = xs.flatMap((x, at) => {
    const y = ys[at] ?? null;
    return x === null || y === null ? [] : [[x, y] as const];
  });
  if (pairs.length < 3) return null;
  const mean = (of: 0 | 1) => pairs.reduce((sum, pair) => sum + pair[of], 0) / pairs.length;
  const [mx, my] = [mean(0), mean(1)];
  let both = 0;
  let x2 = 0;
  let y2 = 0;
  for (const [x, y] of pairs) {
    both += (x - mx) * (y - my);
    x2 += (x - mx) ** 2;
    y2 += (y - my) ** 2;
  }
  return x2 > 0 && y2 > 0 ? both / Math.sqrt(x2 * y2) : null;
}
