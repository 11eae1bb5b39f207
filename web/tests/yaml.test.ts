import { describe, expect, test } from "vitest";
import { edited, scalar, typed, valueAt, withValue, written } from "../src/pages/new/yaml";

const FILE = `# my run
name: digits      # short
train:
  command: python train.py
  params:
    lr: 0.1
  resources:
    cpus_per_task: 2

    # as much as there is
    mem: 2G
`;
const DATA = {
  name: "digits",
  train: { command: "python train.py", params: { lr: 0.1 }, resources: { cpus_per_task: 2, mem: "2G" } },
};

describe("a value in the file", () => {
  test.each([
    ["24:00:00", '"24:00:00"'],
    ["32G", "32G"],
    ["python train.py --lr {params.lr}", "python train.py --lr {params.lr}"],
    ["yes", '"yes"'],
    ["1e-3", '"1e-3"'],
    ["a: b", '"a: b"'],
    ["x # y", '"x # y"'],
    ["", '""'],
    ["a\nb", '"a\\nb"'],
    [0.001, "0.001"],
    [true, "true"],
  ])("%j is written %s", (value, text) => expect(scalar(value)).toBe(text));

  test("that was typed is a number where it reads as one", () => {
    expect([typed(" 0.1 "), typed("1e-3"), typed("007"), typed("true"), typed("a100:2")]).toEqual([
      0.1,
      0.001,
      "007",
      true,
      "a100:2",
    ]);
  });
});

describe("a change by the form", () => {
  test("touches its own line and leaves comments and order", () => {
    expect(edited(FILE, DATA, ["train", "resources", "mem"], "4G")).toBe(FILE.replace("mem: 2G", "mem: 4G"));
    expect(edited(FILE, DATA, ["name"], "letters")).toBe(FILE.replace("digits  ", "letters  "));
    expect(edited(FILE, DATA, ["train", "resources", "cpus-per-task"], 8)).toBe(FILE.replace("task: 2", "task: 8"));
  });

  test("adds a line to its section, or a whole section", () => {
    expect(edited(FILE, DATA, ["train", "params", "seed"], 1)).toBe(
      FILE.replace("    lr: 0.1\n", "    lr: 0.1\n    seed: 1\n"),
    );
    const anew = edited(FILE, DATA, ["train", "limits", "max-legs"], 3);
    expect(anew).toContain("  limits:\n    max-legs: 3\n");
  });

  test("takes a line out", () => {
    expect(edited(FILE, DATA, ["train", "resources", "mem"], undefined)).toBe(FILE.replace("    mem: 2G\n", ""));
    expect(edited(FILE, DATA, ["train", "stop", "signal"], undefined)).not.toContain("stop");
  });

  test("writes anew what stands in braces", () => {
    const flow = "name: x\ntrain: {command: a, params: {lr: 1}}\n";
    const data = { name: "x", train: { command: "a", params: { lr: 1 } } };
    expect(edited(flow, data, ["train", "params", "lr"], 2)).toBe(
      "name: x\ntrain:\n  command: a\n  params:\n    lr: 2\n",
    );
  });
});

test("keys are alike with - and _", () => {
  expect(valueAt(DATA, ["train", "resources", "cpus-per-task"])).toBe(2);
  expect(withValue(DATA, ["train", "resources", "cpus-per-task"], 4)).toEqual({
    ...DATA,
    train: { ...DATA.train, resources: { cpus_per_task: 4, mem: "2G" } },
  });
});

test("lists and empty sections are written as YAML", () => {
  expect(written({ a: ["x", "1:2"], b: {}, c: [] })).toBe('a:\n  - x\n  - "1:2"\nb: {}\nc: []\n');
});
