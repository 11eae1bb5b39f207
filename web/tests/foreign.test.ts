import { expect, test } from "vitest";
import { ours } from "../src/foreign";

test.each([
  ["#/experiments/3/runs/0a1b", { path: "/runs/0a1b" }],
  ["#/experiments/3/runs/0a1b/model-metrics?x=1", { path: "/runs/0a1b" }],
  ["#/experiments/3", { path: "/experiments" }],
  ["#/models", null],
  ["", null],
])("a link that MLflow's client printed leads to the same here: %s", (hash, place) => {
  expect(ours(hash)).toEqual(place);
});
