import { describe, expect, test } from "vitest";
import { byLegs, drawn, drawnGroup } from "../../src/charts/curve";
import { csv, type Seen, svg } from "../../src/charts/export";
import { lineOf, type Told } from "../../src/charts/line";
import { inView, type Pen, paint, placer } from "../../src/charts/paint";
import { openByItself, prefixOf, sections } from "../../src/charts/prefix";

const told = (steps: number[], values: (number | null)[], more: Partial<Told> = {}): Told => ({
  run: "r",
  metric: "loss",
  points: steps.length,
  superseded: 0,
  total: steps.length,
  began: 0,
  legs: [[1, steps[0] ?? 0]],
  exact: true,
  steps,
  values,
  times: steps.map((step) => 1000 - step),
  ...more,
});
const curve = (steps: number[], values: (number | null)[], more: Partial<Told> = {}) => {
  const line = lineOf(told(steps, values, more));
  return drawn({ line, whole: line, other: null }, "step", 0);
};

describe("a curve", () => {
  test("whose clock goes backwards is drawn in the order of x", () => {
    const line = lineOf(told([0, 1, 2], [1, 2, 3]));
    const made = drawn({ line, whole: line, other: null }, "wall", 0);
    expect([...made.xs]).toEqual([998, 999, 1000]);
    expect([...made.mids]).toEqual([3, 2, 1]);
  });
  test("marks where each further leg begins", () => {
    const made = curve([0, 10, 20, 30], [1, 1, 1, 1], {
      legs: [
        [1, 0],
        [2, 15],
        [3, 30],
        [4, 99],
      ],
    });
    expect(made.legs).toEqual([
      [2, 20],
      [3, 30],
    ]);
  });
  test("is taken apart by legs without a gap between them", () => {
    const made = curve([0, 10, 20, 30], [1, 2, 3, 4], {
      legs: [
        [1, 0],
        [3, 20],
      ],
    });
    expect(byLegs(made).map(({ id, xs }) => [id, ...xs])).toEqual([
      ["leg 1", 0, 10, 20],
      ["leg 3", 20, 30],
    ]);
    expect(
      byLegs(
        curve([5, 6], [1, 1], {
          legs: [
            [1, 0],
            [2, 4],
            [3, 9],
          ],
        }),
      ).map(({ id }) => id),
    ).toEqual(["leg 2"]);
  });
  test("along a log axis is smoothed as it is drawn", () => {
    const steps = Array.from({ length: 1000 }, (_, at) => at + 1);
    const line = lineOf(
      told(
        steps,
        steps.map((step) => 1 / step),
      ),
    );
    const lag = (log: boolean) =>
      (drawn({ line, whole: line, other: null }, "step", 0.95, log).smooth[30] as number) * 31;
    expect(lag(true)).toBeLessThan(1.2);
    expect(lag(false)).toBeGreaterThan(2);
  });
  test("of a group has the band that was asked for", () => {
    const group = {
      name: "g",
      xs: [0],
      means: [2],
      deviations: [1],
      lows: [-5],
      highs: [9],
      counts: [4],
      with_data: 4,
    };
    const reach = (band: "deviation" | "error" | "range") => {
      const made = drawnGroup(group, band, 0);
      return [made.lows[0], made.highs[0]];
    };
    expect([reach("deviation"), reach("error"), reach("range")]).toEqual([
      [1, 3],
      [1.5, 2.5],
      [-5, 9],
    ]);
  });
});

describe("painting", () => {
  const frame = {
    x: [0, 10],
    y: [0, 10],
    logX: false,
    logY: false,
    left: 0,
    top: 0,
    width: 100,
    height: 100,
    ratio: 1,
  } as const;
  const seen = () => {
    const lines: number[][] = [];
    const areas: number[][] = [];
    const dots: number[][] = [];
    const pen: Pen = {
      line: (trace) => void lines.push(trace),
      area: (trace) => void areas.push(trace),
      dot: (x, y) => void dots.push([x, y]),
    };
    return { pen, lines, areas, dots };
  };
  const looks = new Map([["r", { colour: "#000", dash: [] }]]);
  test("takes what is in view and one more on each side", () => {
    expect(inView(Float64Array.of(0, 1, 2, 3, 4, 5), [2, 3])).toEqual([1, 5]);
    expect(inView(Float64Array.of(), [2, 3])).toEqual([0, 0]);
  });
  test("shows a lone point between gaps as a dot", () => {
    const { pen, dots } = seen();
    const many = Array.from({ length: 40 }, (_, at) => at / 4);
    paint(
      pen,
      frame,
      [
        curve(
          many,
          many.map((_, at) => (at === 5 || at === 4 || at === 6 ? (at === 5 ? 5 : null) : 1)),
        ),
      ],
      { looks, focus: null, smooth: false },
    );
    expect(dots).toEqual([[12.5, 50]]);
  });
  test("closes a band around a gap and draws none for exact points", () => {
    const { pen, areas } = seen();
    const bands = { exact: false, lows: [1, null, 1], highs: [2, null, 2], means: [1.5, null, 1.5] };
    paint(pen, frame, [curve([0, 5, 10], [], bands), curve([0], [1])], { looks, focus: null, smooth: false });
    expect(areas).toHaveLength(1);
    expect(areas[0]?.filter(Number.isNaN)).toHaveLength(4);
  });
  test("draws the raw line faint under the smoothed one", () => {
    const { pen, lines } = seen();
    paint(pen, frame, [curve([0, 5], [1, 2])], { looks, focus: null, smooth: true });
    expect(lines).toHaveLength(2);
  });
  test("leaves out what a log axis cannot show", () => {
    expect(placer([1, 100], true, 0, 100)(10)).toBeCloseTo(50);
    expect(placer([1, 100], true, 0, 100)(-1)).toBeNaN();
  });
});

describe("what is kept", () => {
  const seen: Seen = {
    title: "loss",
    axis: "Step",
    curves: [curve([0, 1, 2], [1, null, 3])],
    names: new Map([["r", '=cmd|"<b>']]),
    looks: new Map([["r", { colour: "#123456", dash: [4, 2] }]]),
    x: [0, 1.5],
    y: [0, 4],
    logX: false,
    logY: false,
    smooth: false,
  };
  test("as CSV are the points in view, and no cell is a formula", () => {
    expect(csv(seen)).toBe('run,name,step,loss,lowest,highest\nr,"\'=cmd|""<b>",0,1,1,1\nr,"\'=cmd|""<b>",1,,,\n');
  });
  test("as SVG is one drawing in which names are text", () => {
    const made = svg(seen, { x: [[0, "0"]], y: [[1, "1"]] });
    expect(made).toContain("=cmd|&quot;&lt;b&gt;");
    expect(made).not.toContain("<b>");
    expect(made).toContain('stroke-dasharray="4 2"');
  });
});

describe("sections", () => {
  const many = ["loss", "acc", "val/a", "val/b", "system/gpu", "train/a", "train/b"];
  test("are by prefix, plain ones first and the machine's last", () => {
    expect(sections(many).map(({ name, keys }) => [name, keys.length])).toEqual([
      ["Metrics", 2],
      ["train", 2],
      ["val", 2],
      ["system", 1],
    ]);
    expect(prefixOf("/odd")).toBe("Metrics");
  });
  test("are one where there are few, and pins come before all", () => {
    expect(sections(["a/x", "b/y"])).toEqual([{ name: "Metrics", keys: ["a/x", "b/y"] }]);
    expect(sections(many, ["val/b", "gone"])[0]).toEqual({ name: "Pinned", keys: ["val/b"] });
  });
  test("open by themselves until there are many charts; all that a search finds are open", () => {
    const all = [1, 2, 3].map((at) => ({
      name: `p${at}`,
      keys: Array.from({ length: 40 }, (_, key) => `p${at}/${key}`),
    }));
    expect([...openByItself(all, false)]).toEqual(["p1"]);
    expect(openByItself(all, true).size).toBe(3);
    expect([...openByItself([{ name: "system", keys: ["system/a"] }], false)]).toEqual([]);
  });
});
