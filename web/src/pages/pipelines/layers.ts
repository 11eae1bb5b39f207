/** The graph of stages as cards in columns: what needs nothing first, then each behind all that it needs. Pure. */
import type { Details, Stage } from "./words";

const TOGETHER = 4; // more points of one sweep than these share a card

export type Node = {
  id: string;
  /** None: the benchmarks. */
  stages: readonly Stage[];
  /** Names of the cards before it, as people read them. */
  after: readonly string[];
  column: number;
  row: number;
};
export type Graph = {
  nodes: readonly Node[];
  edges: readonly (readonly [Node, Node])[];
  columns: number;
  rows: number;
};

export const BENCHMARKS = "benchmarks";

/** `train-07` is one of `train`, if it is a point of a sweep. */
export function family(stage: Pick<Stage, "name" | "label">): string {
  const base = stage.name.replace(/-\d+$/, "");
  return base !== stage.name && stage.label.startsWith(`${base} `) ? base : stage.name;
}

export function graph(told: Pick<Details, "stages" | "benchmarks">): Graph {
  const sweeps = new Map<string, Stage[]>();
  for (const stage of told.stages) sweeps.set(family(stage), [...(sweeps.get(family(stage)) ?? []), stage]);
  const cards = new Map<string, { stages: Stage[]; needs: Set<string> }>();
  const cardOf = new Map<string, string>();
  for (const stage of told.stages) {
    const id = (sweeps.get(family(stage))?.length ?? 0) > TOGETHER ? family(stage) : stage.name;
    cardOf.set(stage.name, id);
    const card = cards.get(id) ?? { stages: [], needs: new Set<string>() };
    card.stages.push(stage);
    cards.set(id, card);
  }
  for (const card of cards.values())
    for (const stage of card.stages) for (const need of stage.needs) card.needs.add(cardOf.get(need) ?? need);
  if (told.benchmarks.length) {
    const of = told.benchmarks.flatMap((benchmark) => benchmark.of).flatMap((name) => cardOf.get(name) ?? []);
    cards.set(BENCHMARKS, { stages: [], needs: new Set(of) });
  }
  return placed(cards);
}

function placed(cards: ReadonlyMap<string, { stages: readonly Stage[]; needs: ReadonlySet<string> }>): Graph {
  const depths = new Map<string, number>();
  const depth = (id: string): number => {
    const known = depths.get(id);
    if (known !== undefined) return known;
    depths.set(id, 0); // a plan has no circles; were there one, this would not end
    const deepest = Math.max(-1, ...[...(cards.get(id)?.needs ?? [])].map(depth)) + 1;
    depths.set(id, deepest);
    return deepest;
  };
  const filled: number[] = [];
  const nodes = new Map<string, Node>();
  for (const [id, { stages, needs }] of cards) {
    const column = depth(id);
    const row = filled[column] ?? 0;
    filled[column] = row + 1;
    nodes.set(id, { id, stages, after: direct(id, needs, cards), column, row });
  }
  const edges = [...nodes.values()].flatMap((node) =>
    node.after.flatMap((before) => {
      const from = nodes.get(before);
      return from ? [[from, node] as const] : [];
    }),
  );
  return { nodes: [...nodes.values()], edges, columns: filled.length, rows: Math.max(0, ...filled) };
}

/** Without those that another one needs already: their lines say nothing new. */
function direct(
  id: string,
  needs: ReadonlySet<string>,
  cards: ReadonlyMap<string, { needs: ReadonlySet<string> }>,
): string[] {
  const above = new Set<string>();
  const climb = (from: string): void => {
    for (const need of cards.get(from)?.needs ?? [])
      if (!above.has(need) && need !== id) {
        above.add(need);
        climb(need);
      }
  };
  for (const need of needs) climb(need);
  return [...needs].filter((need) => !above.has(need));
}
