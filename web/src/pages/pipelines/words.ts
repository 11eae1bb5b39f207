/** Pipelines in words: how one stands, its stages, its tasks, and the cells of its table. */
import type { Got } from "../../api";
import { duration, num, toNumber, whole } from "../../format";
import type { State } from "../../parts/badge";

export type Line = Got<"/api/v1/pipelines">["pipelines"][number];
export type Details = Got<"/api/v1/pipelines/{name}">;
export type Stage = Details["stages"][number];
export type Failed = Details["failed_tasks"][number];
export type Worker = Details["workers"][number];
export type Summary = Details["summary"];
export type Row = Summary["rows"][number];
export type Column = Summary["columns"][number];
export type Cell = Row["cells"][string];
export type Shown = { state: State; word: string };

const LIVE: Record<string, string> = { submitted: "queued", waiting: "between jobs" };

/** The badge of a stage: a run's shapes and colours, with the stage's own word. */
export function badge(stage: Pick<Stage, "state" | "run_state" | "skipped" | "blocked">): Shown {
  if (stage.skipped) return { state: "finished", word: "skipped" };
  switch (stage.state) {
    case "held":
      return stage.blocked ? { state: "cancelled", word: "never starts" } : { state: "submitted", word: "pending" };
    case "live": {
      const state = stage.run_state ?? "running";
      return { state, word: LIVE[state] ?? state };
    }
    case "unknown":
      return { state: "waiting", word: "unknown" };
    default:
      return { state: stage.state, word: stage.state };
  }
}

/** How many tasks are done and at work, of the known ones: each checkpoint adds some. */
export function tasks(counts: Line["tasks"]): string {
  const all = counts.open + counts.claimed + counts.done + counts.failed;
  if (!all) return "none yet";
  return `${whole(counts.done)} of ${whole(all)} done${counts.claimed ? `, ${whole(counts.claimed)} running` : ""}`;
}

export function fraction(counts: Line["tasks"]): number | null {
  const all = counts.open + counts.claimed + counts.done + counts.failed;
  return all ? counts.done / all : null;
}

/** How long it took, or has been going. */
export function took(line: Pick<Line, "created" | "ended">, now: number): string {
  return duration((line.ended ?? now) - line.created);
}

/** Whether there is something to do again. */
export function canRerun(told: Pick<Details, "state" | "tasks" | "stages">): boolean {
  const bad = told.stages.some(({ state }) => state === "failed" || state === "cancelled");
  return bad || told.tasks.failed > 0 || told.state === "failed" || told.state === "cancelled";
}

/** A task as people name it: train, step 100 · sums · shard 2 of 4. */
export function task(one: Failed): string {
  const of = one.step === null ? one.of : `${one.of}, step ${whole(one.step)}`;
  const part = one.shards > 1 ? ` · shard ${one.shard + 1} of ${one.shards}` : "";
  return `${of} · ${one.benchmark}${part}${one.seed ? ` · seed ${one.seed}` : ""}`;
}

/** Counted by badge: 8 finished, 1 failed. */
export function counted(stages: readonly Stage[]): string {
  const counts = new Map<string, number>();
  for (const stage of stages) counts.set(badge(stage).word, (counts.get(badge(stage).word) ?? 0) + 1);
  return [...counts].map(([word, count]) => `${count} ${word}`).join(", ");
}

/** The one badge that several stages wear together: the worst of them, else what is still going. */
export function together(stages: readonly Stage[]): Shown {
  const worn = stages.map(badge);
  for (const state of ["failed", "cancelled", "running", "waiting", "submitted"] as const) {
    const found = worn.find((one) => one.state === state);
    if (found) return found;
  }
  return { state: "finished", word: "finished" };
}

// ── the table ────────────────────────────────────────────────────────────────

/** By what a benchmark says, the best first; what says nothing comes last. Without one, as they came. */
export function sorted(rows: readonly Row[], column: Column | undefined): readonly Row[] {
  if (!column) return rows;
  const value = (row: Row) => toNumber(row.cells[column.benchmark]?.mean);
  const sign = column.better === "min" ? 1 : -1;
  return [...rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0);
    return sign * (a - b);
  });
}

/** How good each row is in a column: 0 the worst, 1 the best; nothing where all are alike. */
export function heat(rows: readonly Row[], column: Column): Map<string, number> {
  const means = new Map<string, number>();
  for (const row of rows) {
    const mean = toNumber(row.cells[column.benchmark]?.mean);
    if (mean !== null && Number.isFinite(mean)) means.set(row.key, mean);
  }
  const [low, high] = [Math.min(...means.values()), Math.max(...means.values())];
  if (!(high > low)) return new Map();
  const part = (mean: number) => (mean - low) / (high - low);
  return new Map([...means].map(([key, mean]) => [key, column.better === "min" ? 1 - part(mean) : part(mean)]));
}

/** What stands in a cell that has no number. */
export function lacking(cell: Cell): { words: string; style: "bad" | "muted" } {
  if (!cell.tasks) return { words: "–", style: "muted" };
  if (cell.failed) return { words: "failed", style: "bad" };
  if (cell.done === cell.tasks) return { words: "no score", style: "muted" };
  return { words: cell.done ? "none yet" : "pending", style: "muted" };
}

/** All that is known of a cell, for who points at it. */
export function about(cell: Cell, column: Column): string {
  if (!cell.tasks) return `${column.benchmark} does not score this`;
  const told = [`${cell.done} of ${cell.tasks} tasks done`];
  if (cell.items) told.push(`${whole(cell.items)} items`);
  if (cell.done) told.push(`${duration(cell.seconds)} of compute`);
  if (cell.difference !== null) told.push(`${num(cell.difference, 3)} from the baseline`);
  if (cell.p !== null) told.push(`p ${num(cell.p, 2)}`);
  if (cell.reason) told.push(`failed: ${cell.reason}`);
  return told.join(", ");
}
