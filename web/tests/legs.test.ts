import { expect, test } from "vitest";
import { shownLegLimit } from "../src/legs";

test("the default limit is shown only when a run comes near it", () => {
  expect(shownLegLimit({ now: 1, max: 1000 })).toBeNull();
  expect(shownLegLimit({ now: 900, max: 1000 })).toBe(1000);
});

test("a limit that somebody set is always shown", () => {
  expect(shownLegLimit({ now: 0, max: 12 })).toBe(12);
  expect(shownLegLimit({ now: 3, max: null })).toBeNull();
});
