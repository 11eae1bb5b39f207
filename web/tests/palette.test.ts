import { expect, test, vi } from "vitest";

vi.mock("../src/theme", async () => ({ dark: (await import("@preact/signals")).signal(false) }));
const { DASHES, LIGHT, lookOf, looksOf } = await import("../src/palette");

const ids = Array.from({ length: 32 }, (_, at) => `run-${at}`);

test("few runs have colours of their own and whole lines", () => {
  const looks = [...looksOf(ids.slice(0, LIGHT.length)).values()];
  expect(new Set(looks.map(({ colour }) => colour)).size).toBe(LIGHT.length);
  expect(looks.every(({ dash }) => dash === 0)).toBe(true);
});

test("as many as there are colours and dashes all differ", () => {
  const looks = [...looksOf(ids).values()];
  expect(new Set(looks.map(({ colour, dash }) => `${colour} ${dash}`)).size).toBe(LIGHT.length * DASHES.length);
});

test("a run alone has its own colour, and whoever comes later changes nobody's look", () => {
  expect(looksOf(["run-7"]).get("run-7")?.colour).toBe(lookOf("run-7").colour);
  const before = looksOf(ids.slice(0, 5));
  const after = looksOf(ids.slice(0, 9));
  for (const [id, look] of before) expect(after.get(id)).toEqual(look);
});
