import { describe, expect, test } from "vitest";
import { change, fieldsOf, gathered, lessIsBetter, paramRows, type Run, winners } from "../../src/pages/compare/runs";
import { correlation, passes, scaleOf } from "../../src/pages/compare/scale";

const run = (id: string, params: Record<string, string>, tags: Record<string, string> = {}): Run => ({
  id,
  name: id,
  state: "finished",
  experiment_name: "e",
  user: "ada",
  started: 0,
  params,
  tags,
});

describe("params side by side", () => {
  test("have what differs first, and a run without one differs", () => {
    const rows = paramRows([run("a", { lr: "0.1", model: "r18", x: "1" }), run("b", { lr: "0.2", model: "r18" })]);
    expect(rows.map(({ key, same }) => [key, same])).toEqual([
      ["lr", false],
      ["x", false],
      ["model", true],
    ]);
    expect(rows[1]?.values).toEqual(["1", null]);
  });
});

describe("groups", () => {
  const runs = [
    run("a", { lr: "0.1", seed: "1" }),
    run("b", { lr: "0.01", seed: "2" }),
    run("c", { lr: "0.1", seed: "3" }),
    run("d", { seed: "4" }),
  ];
  test("hold every run, numbers in their order, those without last", () => {
    expect(gathered(runs, "params.lr")).toEqual([
      { name: "lr 0.01", runs: ["b"] },
      { name: "lr 0.1", runs: ["a", "c"] },
      { name: "no lr", runs: ["d"] },
    ]);
  });
  test("can be by what varies; what is different in every run comes last", () => {
    expect(fieldsOf(runs).map(({ field }) => field)).toEqual(["params.lr", "params.seed"]);
  });
});

describe("the best of a metric", () => {
  test("is told by its name", () => {
    expect(["train/loss", "val/accuracy", "val_error", "reward", "step"].map(lessIsBetter)).toEqual([
      true,
      false,
      true,
      false,
      false,
    ]);
  });
  test("has winners, and none where all are alike", () => {
    expect([...winners([3, 1, null, 1], true)]).toEqual([1, 3]);
    expect([...winners([3, 1, null, 2], false)]).toEqual([0]);
    expect(winners([2, 2], true).size).toBe(0);
    expect(winners([null, 5], true).size).toBe(0);
    expect(winners([], true).size).toBe(0);
  });
  test("is told against the baseline", () => {
    expect(change(1.5, 1)).toEqual({ by: 0.5, share: 0.5 });
    expect(change(1, -2)).toEqual({ by: 3, share: 1.5 });
    expect(change(1, 0)).toEqual({ by: 1, share: null });
    expect([change(1, 1), change(null, 1), change(1, null)]).toEqual([null, null, null]);
  });
});

describe("a scale", () => {
  test("of numbers over two decades is by powers of ten", () => {
    const scale = scaleOf(["0.001", "0.1", "0.01"]);
    expect(scale.kind).toBe("log");
    expect(scale.place("0.01")).toBeCloseTo(0.5);
    expect(scale.place("0")).toBeNull();
    expect(scale.ticks.map(({ text }) => text)).toEqual(["0.001", "0.01", "0.1"]);
  });
  test("of words has them side by side, and no place for none", () => {
    const scale = scaleOf(["sgd", "adam", null, "lion"]);
    expect([scale.place("adam"), scale.place("lion"), scale.place("sgd"), scale.place(null)]).toEqual([
      0,
      0.5,
      1,
      null,
    ]);
  });
  test("of one value has it in the middle, and of none has none", () => {
    expect(scaleOf([5, 5]).place(5)).toBe(0.5);
    expect(scaleOf([null]).place(null)).toBeNull();
  });
  test("with NaN among numbers takes them for words rather than to lose it", () => {
    expect(scaleOf(["1", "NaN"]).kind).toBe("words");
  });
});

test("a brush lets through what lies in it, on every axis", () => {
  const places = new Map([
    ["lr", 0.5],
    ["loss", null],
  ]);
  expect(passes(places, new Map([["lr", [0.4, 0.6] as const]]))).toBe(true);
  expect(passes(places, new Map([["lr", [0.6, 0.7] as const]]))).toBe(false);
  expect(passes(places, new Map([["loss", [0, 1] as const]]))).toBe(false);
  expect(passes(places, new Map())).toBe(true);
});

test("what goes together correlates", () => {
  expect(correlation([1, 2, 3], [2, 4, 6])).toBeCloseTo(1);
  expect(correlation([1, 2, 3, null], [6, 4, 2, 1])).toBeCloseTo(-1);
  expect(correlation([1, 2], [1, 2])).toBeNull();
  expect(correlation([1, 1, 1], [1, 2, 3])).toBeNull();
});
