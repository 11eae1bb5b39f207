import { describe, expect, test } from "vitest";
import { family, graph } from "../src/pages/pipelines/layers";
import {
  badge,
  canRerun,
  heat,
  lacking,
  type Row,
  type Stage,
  sorted,
  task,
  tasks,
  together,
} from "../src/pages/pipelines/words";

const bare: Stage = {
  name: "train",
  label: "train",
  kind: "train",
  needs: [],
  state: "held",
  run_state: null,
  run: null,
  why: "",
  evidence: "",
  skipped: false,
  done_by: null,
  blocked: false,
  progress: null,
};
const stage = (name: string, needs: string[] = [], more: Partial<Stage> = {}): Stage => ({
  ...bare,
  name,
  label: name,
  needs,
  ...more,
});
const cell = { tasks: 2, done: 2, failed: 0, half: null, text: "", items: 0, seconds: 0, best: false, reason: "" };
const row = (key: string, mean: number | null): Row => ({
  key,
  of: key,
  step: null,
  label: key,
  baseline: false,
  cells: { sums: { ...cell, mean, against: "", difference: null, p: null } },
});
const most = { benchmark: "sums", metric: "score", better: "max" } as const;

describe("the graph of stages", () => {
  test("each is behind all that it needs, and lines that others imply are left out", () => {
    const stages = [stage("env"), stage("prepare", ["env"]), stage("train", ["env", "prepare"])];
    const found = graph({ stages, benchmarks: [{ name: "sums", of: ["train", "a model"] }] });
    expect(found.nodes.map(({ id, column, row }) => [id, column, row])).toEqual([
      ["env", 0, 0],
      ["prepare", 1, 0],
      ["train", 2, 0],
      ["benchmarks", 3, 0],
    ]);
    expect(found.edges.map(([from, to]) => `${from.id} ${to.id}`)).toEqual([
      "env prepare",
      "prepare train",
      "train benchmarks",
    ]);
  });
  test("the points of a large sweep share a card, those of a small one do not", () => {
    const points = (count: number) =>
      Array.from({ length: count }, (_, at) => stage(`train-0${at}`, ["env"], { label: `train lr ${at}` }));
    const large = graph({ stages: [stage("env"), ...points(5)], benchmarks: [] });
    expect(large.nodes.map(({ id, stages }) => [id, stages.length])).toEqual([
      ["env", 1],
      ["train", 5],
    ]);
    expect(large.edges).toHaveLength(1);
    expect(graph({ stages: [stage("env"), ...points(4)], benchmarks: [] }).rows).toBe(4);
    expect(family({ name: "step-2", label: "step-2" })).toBe("step-2");
  });
});

describe("a pipeline in words", () => {
  test("a stage that waits, never begins, runs or was skipped is called so", () => {
    expect(badge(stage("x")).word).toBe("pending");
    expect(badge(stage("x", [], { blocked: true })).word).toBe("never starts");
    expect(badge(stage("x", [], { state: "live", run_state: "submitted" }))).toEqual({
      state: "submitted",
      word: "queued",
    });
    expect(badge(stage("x", [], { state: "finished", skipped: true })).word).toBe("skipped");
    const swept = [stage("a", [], { state: "finished" }), stage("b", [], { state: "live", run_state: "running" })];
    expect(together(swept).word).toBe("running");
    expect(together([...swept, stage("c", [], { state: "failed" })]).state).toBe("failed");
  });
  test("its tasks are counted, and one is named for people", () => {
    expect(tasks({ open: 5, claimed: 1, done: 24, failed: 2 })).toBe("24 of 32 done, 1 running");
    expect(tasks({ open: 0, claimed: 0, done: 0, failed: 0 })).toBe("none yet");
    const failed = { id: "", of: "train", step: 1200, benchmark: "sums", seed: 0, shard: 1, shards: 2 };
    expect(task({ ...failed, reason: "", evidence: "", hint: "" })).toBe("train, step 1,200 · sums · shard 2 of 2");
  });
  test("only where something failed or was cancelled there is something to do again", () => {
    const none = { open: 1, claimed: 0, done: 0, failed: 0 };
    expect(canRerun({ state: "running", tasks: none, stages: [stage("x")] })).toBe(false);
    expect(canRerun({ state: "running", tasks: { ...none, failed: 1 }, stages: [] })).toBe(true);
    expect(canRerun({ state: "cancelled", tasks: none, stages: [] })).toBe(true);
  });
});

describe("the table", () => {
  const rows = [row("a", 0.5), row("b", null), row("c", 0.9), row("d", 0.7)];
  test("the best comes first, whichever way is better, and what says nothing last", () => {
    expect(sorted(rows, most).map(({ key }) => key)).toEqual(["c", "d", "a", "b"]);
    expect(sorted(rows, { ...most, better: "min" }).map(({ key }) => key)).toEqual(["a", "d", "c", "b"]);
    expect(sorted(rows, undefined)).toBe(rows);
  });
  test("the better, the warmer; where all are alike, nothing is", () => {
    expect([...heat(rows, most)].map(([key, warm]) => [key, Number(warm.toFixed(2))])).toEqual([
      ["a", 0],
      ["c", 1],
      ["d", 0.5],
    ]);
    expect(heat(rows, { ...most, better: "min" }).get("a")).toBe(1);
    expect(heat([row("a", 1), row("b", 1)], most).size).toBe(0);
  });
  test("an empty cell says why it is", () => {
    const empty = { ...cell, mean: null, against: "", difference: null, p: null } as const;
    expect(lacking({ ...empty, tasks: 0, done: 0 }).words).toBe("–");
    expect(lacking({ ...empty, done: 0 }).words).toBe("pending");
    expect(lacking({ ...empty, done: 1, failed: 1 })).toEqual({ words: "failed", style: "bad" });
    expect(lacking(empty).words).toBe("no score");
  });
});
