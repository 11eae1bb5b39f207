import { afterEach, expect, test, vi } from "vitest";

const page = { querySelector: () => null, addEventListener: vi.fn(), hidden: false };
vi.stubGlobal("document", page);
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

const HELLO = 'id: b-7\nevent: hello\ndata: {"event":"hello"}\n\n';

/** The page's stream from its beginning: `answers` in their order, and what listeners are told. */
async function begun(...answers: (() => Promise<Response>)[]) {
  vi.useFakeTimers();
  vi.resetModules();
  vi.stubGlobal(
    "fetch",
    vi.fn(() => (answers.shift() ?? never)()),
  );
  const live = await import("../src/live");
  const told: string[] = [];
  live.onEvents((events) => told.push(...events.map(({ event }) => event)));
  live.startLive();
  return { ...live, told };
}

const never = () => new Promise<Response>(() => {});
const away = () => Promise.reject(new TypeError("no answer"));
const open = () =>
  Promise.resolve(new Response(new ReadableStream({ start: (to) => to.enqueue(new TextEncoder().encode(HELLO)) })));
const late = (ms: number) => () => new Promise((done) => setTimeout(done, ms)).then(open);

afterEach(() => {
  page.hidden = false;
  vi.useRealTimers();
});

test("pages read once the stream is open, and then nothing was missed", async () => {
  const { opened, told } = await begun(late(500));
  await vi.advanceTimersByTimeAsync(400);
  expect(opened.value).toBe(false);
  await vi.advanceTimersByTimeAsync(200);
  expect(opened.value).toBe(true);
  await vi.advanceTimersByTimeAsync(2000);
  expect(told).toEqual([]);
});

test("a stream that does not open keeps no page waiting for long; once it does, all is read anew", async () => {
  const { opened, told } = await begun(late(4000));
  await vi.advanceTimersByTimeAsync(3500);
  expect(opened.value).toBe(true);
  expect(told).toEqual([]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(told).toEqual(["reset"]);
});

test("after a break all is read anew: what was asked for meanwhile got no answer", async () => {
  const { connection, told } = await begun(away, open);
  await vi.advanceTimersByTimeAsync(0);
  expect(connection.value).toBe("lost");
  await vi.advanceTimersByTimeAsync(1500);
  expect(connection.value).toBe("live");
  expect(told).toEqual(["reset"]);
});

test("a page that was opened in the background reads anew when it is looked at", async () => {
  page.hidden = true;
  const { opened, told } = await begun(open);
  expect(opened.value).toBe(true);
  page.hidden = false;
  page.addEventListener.mock.lastCall?.[1]();
  await vi.advanceTimersByTimeAsync(500);
  expect(told).toEqual(["reset"]);
});
