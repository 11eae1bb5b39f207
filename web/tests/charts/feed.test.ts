import { beforeEach, expect, test, vi } from "vitest";
import type { Told } from "../../src/charts/line";

type Asked = {
  runs: string[];
  metrics: string[];
  buckets: number;
  spans: Record<string, [number | null, number | null]>;
};
const asked: Asked[] = [];
let slow = 0; // ms that an answer takes
/** A server with series: the steps of each, at most `buckets` of them, by spans. */
const series = new Map<string, { steps: number[]; legs: [number, number][]; total: number }>();

vi.mock("../../src/api", () => ({
  inWords: (error: unknown) => ({ what: String(error), next: "" }),
  post: async (_path: string, { body }: { body: Asked }) => {
    asked.push(body);
    if (slow) await new Promise((done) => setTimeout(done, slow));
    const told: Told[] = [];
    for (const run of body.runs)
      for (const metric of body.metrics) {
        const found = series.get(`${run} ${metric}`);
        if (!found) continue;
        const [first, last] = body.spans[run] ?? [null, null];
        const inside = found.steps.filter(
          (step) => (first === null || step >= first) && (last === null || step <= last),
        );
        const every = Math.ceil(inside.length / body.buckets) || 1;
        const steps = inside.filter((_, at) => at % every === 0);
        const row = steps.map((step) => step);
        const exact = every === 1;
        told.push({
          ...{
            run,
            metric,
            points: inside.length,
            superseded: 0,
            total: found.total,
            began: 0,
            legs: found.legs,
            exact,
            steps,
          },
          ...(exact ? { values: row } : { lows: row, highs: row, means: row }),
          times: row,
        });
      }
    return { series: told };
  },
}));
const { Feed } = await import("../../src/charts/feed");
const { batches } = await import("../../src/charts/load");

let named = 0;
const put = (run: string, metric: string, count: number, legs: [number, number][] = [[1, 0]], total = count) =>
  series.set(`${run} ${metric}`, { steps: Array.from({ length: count }, (_, at) => at), legs, total });
const settled = () => vi.advanceTimersByTimeAsync(1000);

/** A feed of a metric that no other test has read: whole lines are kept for the page. */
function fed(run: string, count: number, buckets = 100) {
  const metric = `loss-${named++}`;
  put(run, metric, count);
  const feed = new Feed(metric, buckets, () => undefined);
  return { feed, metric };
}

beforeEach(() => {
  vi.useFakeTimers();
  asked.length = 0;
});

test("a zoom asks for the part at full resolution, and leaving it shows the whole again", async () => {
  const { feed } = fed("r", 10_000);
  feed.show(["r"], "step");
  await settled();
  expect(feed.given()[0]?.line.exact).toBe(false);
  feed.zoom([500, 540]);
  await settled();
  expect(feed.given()[0]?.line.exact).toBe(true);
  feed.zoom(null);
  expect(feed.given()[0]?.line.points).toBe(10_000);
});

test("a part that is zoomed into before the whole has come is asked for as soon as it has", async () => {
  const { feed } = fed("r", 10_000);
  slow = 500;
  feed.show(["r"], "step");
  feed.zoom([500, 540]);
  await vi.advanceTimersByTimeAsync(3000);
  slow = 0;
  expect(feed.given()[0]?.line.exact).toBe(true);
});

test("along another axis each answer makes the next question sharper, until every point is seen", async () => {
  const { feed } = fed("r", 100_000);
  feed.show(["r"], "wall");
  await settled();
  feed.zoom([50_010, 50_030]);
  await settled();
  expect(feed.given()[0]?.line.exact).toBe(true);
  expect(asked.length).toBeGreaterThan(2);
});

test("an exact line is not asked for again when it is zoomed into", async () => {
  const { feed } = fed("r", 50);
  feed.show(["r"], "step");
  await settled();
  feed.zoom([10, 20]);
  await settled();
  expect(asked).toHaveLength(1);
});

test("a run that is added is the only one that is asked for", async () => {
  const { feed, metric } = fed("a", 10);
  put("b", metric, 10);
  feed.show(["a"], "step");
  await settled();
  feed.show(["a", "b"], "step");
  await settled();
  expect(asked.map(({ runs }) => runs)).toEqual([["a"], ["b"]]);
  expect(feed.given().map(({ line }) => line.run)).toEqual(["a", "b"]);
});

test("live, only what is after the last step is asked for", async () => {
  const { feed, metric } = fed("r", 10);
  feed.show(["r"], "step");
  await settled();
  put("r", metric, 12);
  feed.live(["r", "another"]);
  await settled();
  expect(asked.at(-1)?.spans).toEqual({ r: [10, null] });
  expect(feed.given()[0]?.line.steps).toHaveLength(12);
});

test("a leg that goes back makes the line be read anew", async () => {
  const { feed, metric } = fed("r", 10);
  feed.show(["r"], "step");
  await settled();
  put(
    "r",
    metric,
    12,
    [
      [1, 0],
      [2, 5],
    ],
    17,
  );
  feed.live(["r"]);
  await settled();
  expect(asked.at(-1)?.spans).toEqual({});
  expect(feed.given()[0]?.line.legs).toHaveLength(2);
});

test("an axis of another metric brings that metric along", async () => {
  const { feed, metric } = fed("r", 10);
  put("r", "epoch", 10);
  feed.show(["r"], "metric:epoch");
  await settled();
  expect(asked[0]?.metrics).toEqual([metric, "epoch"]);
  expect(feed.given()[0]?.other?.metric).toBe("epoch");
});

test("what charts ask for together goes out together, as much as an answer should hold", () => {
  const ask = (metric: string, runs = ["a"], buckets = 400) => ({ runs, metric, buckets });
  expect(batches([ask("x"), ask("y"), ask("x", ["b"])]).map((batch) => batch.map(({ metric }) => metric))).toEqual([
    ["x", "y"],
    ["x"],
  ]);
  const many = Array.from({ length: 100 }, (_, at) => `run-${at}`);
  expect(batches(["a", "b", "c", "d"].map((metric) => ask(metric, many)))).toHaveLength(2);
});
