import { expect, test, vi } from "vitest";

vi.stubGlobal("document", { querySelector: () => null, addEventListener: () => {} });
vi.stubGlobal("window", { location: { pathname: "/", search: "" }, addEventListener: () => {} });

const { parse } = await import("../src/live");

test("a torn last event waits for its rest", () => {
  const first = parse('id: b-1\nevent: run_changed\ndata: {"event":"run_changed","run_id":"r"}\n\nid: b-2\nda');
  expect(first.events).toEqual([{ event: "run_changed", run_id: "r" }]);
  expect(first.cursor).toBe("b-1");
  const second = parse(`${first.rest}ta: {"event":"points_added","run_id":"r"}\n\n`);
  expect(second.events).toEqual([{ event: "points_added", run_id: "r" }]);
  expect(second.cursor).toBe("b-2");
});

test("heartbeats and the greeting are no events, but the greeting has a cursor", () => {
  const told = parse(': still here\n\nretry: 2000\nid: b-7\nevent: hello\ndata: {"event":"hello"}\n\n');
  expect(told).toEqual({ events: [], cursor: "b-7", rest: "" });
});

test("an event that is no JSON is passed over", () => {
  expect(parse("id: b-1\nevent: x\ndata: {oops\n\n").events).toEqual([]);
});
