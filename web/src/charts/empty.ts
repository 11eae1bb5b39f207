/** Why a chart is empty, and what would show something. Pure. */
import { type Axis, axisMetric, axisName, type Window } from "./axis";
import type { Line } from "./line";

export type Way = "step" | "linear x" | "linear y" | "reset zoom";
export type Why = { why: string; ways: readonly Way[] };

export type Seen = {
  metric: string;
  axis: Axis;
  lines: readonly Line[];
  /** Where the axis is another metric: its lines. */
  others: readonly Line[];
  runs: number;
  window: Window | null;
  logX: boolean;
  logY: boolean;
};

export function whyEmpty(seen: Seen): Why {
  const { lines, axis, metric, runs } = seen;
  const many = runs > 1;
  if (runs === 0) return { why: "No run is selected. Click a run in the list to plot it.", ways: [] };
  const points = lines.reduce((sum, line) => sum + line.total, 0);
  if (points === 0)
    return {
      why: many ? `None of these ${runs} runs have logged ${metric} yet.` : `This run has not logged ${metric} yet.`,
      ways: [],
    };
  const other = axisMetric(axis);
  if (other !== null && seen.others.every((line) => line.steps.length === 0)) {
    return {
      why: `${many ? "These runs have" : "This run has"} no ${axisName(axis)} to plot against.`,
      ways: ["step"],
    };
  }
  const values = lines.reduce(
    (sum, line) => sum + line.mids.reduce((count, value) => count + (Number.isFinite(value) ? 1 : 0), 0),
    0,
  );
  if (values === 0 && seen.window === null) {
    const bads = lines.reduce((sum, line) => sum + line.bads, 0);
    return { why: `All ${bads || points} values are NaN or infinite.`, ways: [] };
  }
  if (seen.logY && !lines.some((line) => line.highs.some((value) => value > 0))) {
    return { why: "No value is above zero, so a log axis can show none.", ways: ["linear y"] };
  }
  if (seen.window !== null) return { why: "There are no points in this zoom range.", ways: ["reset zoom"] };
  if (other !== null) return { why: `${metric} and ${axisName(axis)} were logged at different steps.`, ways: ["step"] };
  if (seen.logX) return { why: "No x value is above zero, so a log axis can show none.", ways: ["linear x"] };
  return { why: "There is nothing to plot.", ways: ["step"] };
}
