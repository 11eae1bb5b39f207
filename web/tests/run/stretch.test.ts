import { expect, test } from "vitest";
import { clock, given, NOTHING, typed } from "../../src/pages/run/changes";
import { layout, type Told, ticks } from "../../src/pages/run/stretch";

const leg = (number: number, start: number, end: number | null): Told["segments"][number] => ({
  kind: "leg",
  leg: number,
  start,
  end,
  words: `leg ${number}`,
  job: null,
  state: end === null ? "running" : "time_limit",
  log: { leg: number, stream: "out" },
});
const mark = (at: number, step: number): Told["marks"][number] => ({
  ...{ kind: "checkpoint", leg: 1, at, words: `checkpoint of step ${step}`, step, log: null },
});

test("stretches lie along the width by their times, and one that goes on reaches to now", () => {
  const told: Told = { checkpoints: 0, start: 0, end: 50, segments: [leg(1, 0, 50), leg(2, 50, null)], marks: [] };
  const [first, second] = layout(told, 1000, 100);
  expect([first?.left, first?.width]).toEqual([0, 500]);
  expect([second?.left, second?.width]).toEqual([500, 500]);
  expect(second?.words).toContain("so far");
});

test("moments that would touch are drawn as one that says how many", () => {
  const told: Told = {
    checkpoints: 3,
    start: 0,
    end: 1000,
    segments: [leg(1, 0, 1000)],
    marks: [mark(10, 1), mark(11, 2), mark(900, 3)],
  };
  const moments = layout(told, 1000, 1000).filter(({ lane }) => lane === 2);
  expect(moments.map(({ words, count }) => [words, count])).toEqual([
    ["2 checkpoints, steps 1 to 2", 2],
    ["checkpoint of step 3", 1],
  ]);
});

test("the shortest stretch can still be seen", () => {
  const told: Told = { checkpoints: 0, start: 0, end: 1e6, segments: [leg(1, 0, 1), leg(2, 1, 1e6)], marks: [] };
  expect(layout(told, 300, 1e6)[0]?.width).toBeGreaterThanOrEqual(3);
});

test("ticks are round, few, and begin at the beginning", () => {
  const found = ticks(1000, 1000 + 3 * 86400, 900);
  expect(found[0]).toEqual({ left: 0, seconds: 0 });
  expect(found.length).toBeLessThanOrEqual(12);
  expect((found[1]?.seconds ?? 0) % 3600).toBe(0);
});

test("empty fields change nothing, and numbers stay numbers", () => {
  expect(given(NOTHING)).toEqual({ resources: {}, limits: {} });
  expect(given({ ...NOTHING, mem: " 32G ", "max-legs": "4" })).toEqual({
    resources: { mem: "32G" },
    limits: { "max-legs": 4 },
  });
  expect(["0.5", "1e-3", "7", "true", "adam", "1.2.3", ""].map(typed)).toEqual([
    0.5,
    0.001,
    7,
    true,
    "adam",
    "1.2.3",
    "",
  ]);
  expect([clock(3600), clock(90061)]).toEqual(["01:00:00", "1-01:01:01"]);
});
