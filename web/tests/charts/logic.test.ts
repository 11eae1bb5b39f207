import { describe, expect, test } from "vitest";
import { placesOf, rising, spanOf, valueAt } from "../../src/charts/axis";
import { whyEmpty } from "../../src/charts/empty";
import { extended, type Line, lineOf, type Told } from "../../src/charts/line";
import { type Curve, closest, readings } from "../../src/charts/read";
import { counted, moved, reachX, reachY, scaled } from "../../src/charts/scale";
import { smoothed, unitOf } from "../../src/charts/smooth";
import { clockTicks, logTicks, shortDuration, shortNumber } from "../../src/charts/ticks";

const told = (values: (number | string | null)[], more: Partial<Told> = {}): Told => ({
  run: "r",
  metric: "loss",
  points: values.length,
  superseded: 0,
  total: values.length,
  began: 990,
  legs: [[1, 0]],
  exact: true,
  steps: values.map((_, at) => at),
  times: values.map((_, at) => 1000 + at),
  values,
  ...more,
});
const line = (values: (number | string | null)[], more: Partial<Told> = {}): Line => lineOf(told(values, more));
const curve = (ys: number[], id = "r", xs = ys.map((_, at) => at)): Curve => {
  const mids = Float64Array.from(ys);
  return { id, xs: Float64Array.from(xs), lows: mids, mids, highs: mids, smooth: mids };
};

describe("a line", () => {
  test("has a gap where a value is no number, however the server writes it", () => {
    expect([...line([1, null, "NaN", "Infinity", 2]).mids]).toEqual([1, Number.NaN, Number.NaN, Number.NaN, 2]);
  });
  test("of buckets keeps the lowest and highest", () => {
    const made = line([], {
      exact: false,
      steps: [0, 10],
      lows: [1, 0],
      highs: [9, 100],
      means: [4, 5],
      times: [0, 1],
    });
    expect([[...made.lows], [...made.mids], [...made.highs]]).toEqual([
      [1, 0],
      [4, 5],
      [9, 100],
    ]);
  });
  test("grows by what is new, and overlap is not taken twice", () => {
    const tail = line([], { steps: [2, 3, 4], values: [0, 7, 8], times: [0, 1, 2], total: 5, legs: [[1, 0]] });
    const made = extended(line([1, 2, 3]), tail, 100);
    expect([...(made?.steps ?? [])]).toEqual([0, 1, 2, 3, 4]);
    expect([...(made?.mids ?? [])]).toEqual([1, 2, 3, 7, 8]);
  });
  test("is read anew where points came late, a leg went back or it has grown long", () => {
    const tail = (more: Partial<Told>) => line([], { steps: [3], values: [7], times: [0], total: 4, ...more });
    expect(extended(line([1, 2, 3]), tail({ total: 9 }), 100)).toBeNull();
    expect(
      extended(
        line([1, 2, 3]),
        tail({
          legs: [
            [1, 0],
            [2, 2],
          ],
        }),
        100,
      ),
    ).toBeNull();
    expect(extended(line([1, 2, 3]), tail({}), 3)).toBeNull();
    expect(
      extended(
        line([1, 2, 3]),
        tail({
          legs: [
            [1, 0],
            [2, 3],
          ],
        }),
        100,
      )?.legs,
    ).toHaveLength(2);
  });
  test("stays itself where nothing is new", () => {
    const whole = line([1, 2, 3]);
    expect(extended(whole, line([], { steps: [], values: [], times: [], total: 3 }), 100)).toBe(whole);
  });
});

describe("an axis", () => {
  test("of relative time begins at the run's start", () => {
    expect([...placesOf(line([1, 2]), "relative", null)]).toEqual([10, 11]);
    expect([...placesOf(line([1, 2], { began: null }), "relative", null)]).toEqual([0, 1]);
  });
  test("of another metric lies between that metric's points, and nowhere else", () => {
    const epoch = line([], { steps: [0, 4], values: [0, 1], times: [0, 1] });
    expect([...placesOf(line([1, 1, 1, 1, 1, 1]), "metric:epoch", epoch)]).toEqual([0, 0.25, 0.5, 0.75, 1, Number.NaN]);
    expect(valueAt(epoch, -1)).toBeNaN();
  });
  test("asks the server by steps, with a quarter more on each side", () => {
    const long = line(Array.from({ length: 101 }, () => 1));
    expect(spanOf(long, long.steps, [40, 60])).toEqual([34, 66]);
    expect(spanOf(long, long.steps, [-50, 5])).toEqual([null, 19]);
    expect(spanOf(long, long.steps, [200, 300])).toEqual([1, 0]);
    expect(spanOf(long, long.steps, [40.4, 40.6])).toEqual([40, 41]);
  });
  test("may turn back", () => {
    expect([
      rising(Float64Array.of(1, 2, 2)),
      rising(Float64Array.of(1, 0)),
      rising(Float64Array.of(1, Number.NaN)),
    ]).toEqual([true, false, false]);
  });
  test("has short ticks", () => {
    expect([0, 45, 90, 3600, 9000, 86400 * 3, 86400 * 3 + 7200].map(shortDuration)).toEqual([
      "0s",
      "45s",
      "1m30",
      "1h",
      "2h30",
      "3d",
      "3d2h",
    ]);
    expect([0, 1500, 20000, 1.5e6, 0.00001, -3, 0.1 + 0.2].map(shortNumber)).toEqual([
      "0",
      "1500",
      "20k",
      "1.5M",
      "1e−5",
      "−3",
      "0.3",
    ]);
  });
});

describe("ticks", () => {
  test("of a log axis are round, few, and even where it is short", () => {
    expect(logTicks(1.07, 10, 8)).toEqual([2, 3, 5, 7, 10]);
    expect(logTicks(0.001, 1000, 8)).toEqual([0.001, 0.01, 0.1, 1, 10, 100, 1000]);
    expect(logTicks(1e-12, 1e12, 8)).toHaveLength(7);
    expect(logTicks(1.23, 1.95, 6)).toEqual([1.4, 1.6, 1.8]);
  });
  test("of wall time tell the day where it begins", () => {
    const midnight = new Date(2026, 10, 15).getTime() / 1000;
    expect(clockTicks([midnight - 3600, midnight, midnight + 3600])).toEqual(["23:00", "15 Nov", "1:00"]);
    expect(clockTicks([midnight + 1, midnight + 2])).toEqual(["0:00:01", "0:00:02"]);
  });
});

describe("smoothing", () => {
  const xs = (n: number) => Float64Array.from({ length: n }, (_, at) => at);
  test("of even points is the exponential mean people know, without a start from zero", () => {
    const made = smoothed(xs(3), Float64Array.of(1, 3, 5), 0.5, 1);
    expect(made[0]).toBeCloseTo(1);
    expect(made[1]).toBeCloseTo((0.25 * 1 + 0.5 * 3) / 0.75);
    expect(made[2]).toBeCloseTo((0.125 * 1 + 0.25 * 3 + 0.5 * 5) / 0.875);
  });
  test("keeps a gap and goes on after it", () => {
    const made = smoothed(xs(4), Float64Array.of(2, Number.NaN, Number.NaN, 2), 0.9, 1);
    expect([made[0], made[1], made[2]]).toEqual([2, Number.NaN, Number.NaN]);
    expect(made[3]).toBeCloseTo(2);
  });
  test("forgets more over a longer way", () => {
    const near = smoothed(Float64Array.of(0, 1), Float64Array.of(0, 1), 0.9, 1)[1] as number;
    const far = smoothed(Float64Array.of(0, 20), Float64Array.of(0, 1), 0.9, 1)[1] as number;
    expect(far).toBeGreaterThan(near);
    expect(far).toBeGreaterThan(0.85);
  });
  test("does not depend on the resolution", () => {
    const fine = Float64Array.from({ length: 10001 }, (_, at) => at);
    const coarse = Float64Array.from({ length: 1001 }, (_, at) => at * 10);
    const shape = (x: number) => Math.sin(x / 800);
    const unit = unitOf(0, 10000, 10001);
    const one = smoothed(fine, fine.map(shape), 0.95, unit);
    const other = smoothed(coarse, coarse.map(shape), 0.95, unit);
    expect(Math.abs((one[9000] as number) - (other[900] as number))).toBeLessThan(0.02);
  });
  test("of weight 0 is the line itself", () => {
    const values = Float64Array.of(1, 2);
    expect(smoothed(xs(2), values, 0, 1)).toBe(values);
  });
});

describe("a reading", () => {
  test("is of every run near enough, highest first", () => {
    const found = readings([curve([1, 2, 3], "low"), curve([7, 8, 9], "high"), curve([5], "far", [50])], 1.2, 1);
    expect(found.map(({ id, value, x }) => [id, value, x])).toEqual([
      ["high", 8, 1],
      ["low", 2, 1],
    ]);
  });
  test("passes over gaps", () => {
    expect(readings([curve([1, Number.NaN, Number.NaN, 4])], 1.1, 5)[0]?.value).toBe(1);
    expect(readings([curve([Number.NaN])], 0, 5)).toEqual([]);
  });
  test("knows the run nearest to the pointer in height", () => {
    const found = readings([curve([1], "low"), curve([100], "high")], 0, 1);
    expect(closest(found, 20, (value) => value)?.id).toBe("low");
    expect(closest(found, 20, Math.log)?.id).toBe("high");
    expect(closest([], 1, (value) => value)).toBeNull();
  });
});

describe("a scale", () => {
  test("holds every spike, and gives a flat line room", () => {
    const spiky = { ...curve([1, 1, 1]), highs: Float64Array.of(1, 500, 1) };
    expect(reachY([spiky], [0, 2], false)?.[1]).toBeGreaterThanOrEqual(500);
    expect(reachY([curve([3, 3])], [0, 1], false)).toEqual([3 - 0.3, 3 + 0.3]);
    expect(reachY([curve([0])], [0, 1], false)).toEqual([-1, 1]);
  });
  test("may leave the outermost hundredths out", () => {
    const ys = Array.from({ length: 1000 }, (_, at) => (at === 500 ? 1e6 : at / 1000));
    expect(reachY([curve(ys)], [0, 999], false, true)?.[1]).toBeLessThan(2);
  });
  test("on a log axis begins above zero", () => {
    expect(reachY([curve([-1, 0, 0.1, 10])], [0, 3], true)?.[0]).toBeCloseTo(0.0794, 3);
    expect(reachY([curve([-1, 0])], [0, 1], true)).toBeNull();
    expect(reachX([curve([1, 1, 1])], true)).toEqual([1, 2]);
    expect(reachX([curve([])], false)).toBeNull();
  });
  test("moves and scales around a place", () => {
    expect(moved([0, 10], 0.5, false)).toEqual([5, 15]);
    expect(moved([1, 100], 0.5, true)).toEqual([10, 1000]);
    expect(scaled([0, 10], 0.5, 0, false)).toEqual([0, 5]);
    expect(scaled([1, 100], 0.5, 0.5, true)[0]).toBeCloseTo(10 ** 0.5);
  });
  test("tells how many points are drawn and how many there are", () => {
    const one = { ...curve([1, 1, 1, 1]), points: 4000 };
    expect(counted([one], [0, 3])).toEqual({ drawn: 4, real: 4000 });
    expect(counted([one], [0, 1.5])).toEqual({ drawn: 2, real: 2000 });
  });
});

describe("an empty chart says why", () => {
  const seen = { metric: "loss", axis: "step" as const, others: [], runs: 1, window: null, logX: false, logY: false };
  test.each([
    [{ ...seen, lines: [], runs: 0 }, "No run is selected", []],
    [{ ...seen, lines: [] }, "has not logged loss yet", []],
    [{ ...seen, lines: [], runs: 3 }, "None of these 3 runs", []],
    [{ ...seen, lines: [line([1])], axis: "metric:epoch" as const }, "no epoch to plot against", ["step"]],
    [{ ...seen, lines: [line([null, null], { bads: [1, 1] })] }, "All 2 values are NaN or infinite", []],
    [{ ...seen, lines: [line([-1, 0])], logY: true }, "No value is above zero", ["linear y"]],
    [{ ...seen, lines: [line([1])], window: [5, 6] as const }, "zoom range", ["reset zoom"]],
    [{ ...seen, lines: [line([1])], axis: "metric:epoch" as const, others: [line([1])] }, "different steps", ["step"]],
    [{ ...seen, lines: [line([1])], logX: true }, "log axis", ["linear x"]],
  ])("%#", (given, words, ways) => {
    expect(whyEmpty(given).why).toContain(words);
    expect(whyEmpty(given).ways).toEqual(ways);
  });
});
