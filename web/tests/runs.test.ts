import { describe, expect, test, vi } from "vitest";

vi.stubGlobal("document", { querySelector: () => null, addEventListener: () => {} });
vi.stubGlobal("window", { location: { pathname: "/", search: "" }, addEventListener: () => {} });

const { chosenColumns, columnOf, metricsOf, orderOf, quoted, sortCodec, USUAL } = await import(
  "../src/pages/runs/columns"
);
const { all, groupFilter } = await import("../src/pages/runs/terms");
const { Rows } = await import("../src/pages/runs/rows");
const { nameOf, stateBy } = await import("../src/pages/runs/pipeline");
const { fitting, isWhole, wordAt } = await import("../src/pages/runs/words");
const { curveOf, pathOf } = await import("../src/pages/runs/spark");

describe("columns in the address", () => {
  test("say nothing while they are the usual ones", () => {
    expect(chosenColumns.write(chosenColumns.read(null))).toBeNull();
    expect(chosenColumns.read(null).map(({ id }) => id)).toEqual(USUAL);
  });

  test("keep their order and widths, whatever a key holds", () => {
    const given = [
      { id: "name", width: 300 },
      { id: "metrics.a,b~c", width: 110 },
      { id: "params.x@y", width: 99 },
    ];
    expect(chosenColumns.read(chosenColumns.write(given))).toEqual(given);
  });

  test("that are not known or twice there are left out, and the name never is", () => {
    expect(chosenColumns.read("state,nonsense,state@200,metrics.").map(({ id }) => id)).toEqual(["name", "state"]);
  });

  test("have widths that can be used", () => {
    expect(chosenColumns.read("name@1,state@99999").map(({ width }) => width)).toEqual([48, 1200]);
  });

  test("tell which metrics must come with the rows", () => {
    expect(metricsOf(chosenColumns.read("name,metrics.b,params.x,metrics.a"))).toEqual(["a", "b"]);
  });
});

describe("the order", () => {
  test.each([
    ["-metrics.loss", "metrics.loss desc"],
    ["name", "name asc"],
    ["-why", "created desc"],
    [null, "created desc"],
    ['params.a "b"', 'params.`a "b"` asc'],
  ])("%s is asked for as %s", (given, asked) => expect(orderOf(sortCodec.read(given))).toBe(asked));

  test("of a column that the server cannot sort by does not exist", () => {
    expect(columnOf("spark")?.order).toBeUndefined();
  });
});

describe("filters that the page writes", () => {
  test("quote what needs it", () => {
    expect([quoted("loss"), quoted("train/loss"), quoted("a b"), quoted('a"b')]).toEqual([
      "loss",
      "train/loss",
      '"a b"',
      '`a"b`',
    ]);
    expect(groupFilter("tags.my team", "it's \\ me")).toBe("tags.\"my team\" = 'it\\'s \\\\ me'");
    expect(groupFilter("params.lr", null)).toBe("params.lr is null");
  });

  test("are joined so that an `or` stays inside", () => {
    expect(all(["a = 1 or b = 2", "", "state = failed"])).toBe("(a = 1 or b = 2) and (state = failed)");
    expect(all(["", " "])).toBe("");
  });
});

describe("the word at the cursor", () => {
  test.each([
    ["st", "st", "start"],
    ["state ", "", "name"],
    ["state = ru", "ru", "sign"],
    ["state = running ", "", "value"],
    ["state = running and par", "par", "start"],
    ["state in (failed, ca", "ca", "sign"],
    ["not (params.lr", "params.lr", "start"],
    ["name = 'a b", "'a b", "sign"],
    ["state=", "", "sign"],
  ])("of %j is %j after %s", (text, word, after) => {
    const spot = wordAt(text, text.length);
    expect([spot.word, spot.after]).toEqual([word, after]);
  });
});

describe("a filter that is being typed", () => {
  test.each([
    "params.",
    "params.lr",
    "params.lr ",
    "params.lr <",
    "state",
    "state = ",
    "not state",
    "name = 'a b",
    "state = a and ",
    "state in (a",
  ])("is not asked for while it is %j", (text) => expect(isWhole(text)).toBe(false));
  test.each([
    "params.lr < 3",
    "state = failed ",
    "name like 'a%'",
    "digits",
    "lr 0.1",
    "state of the art",
    "",
    "state in (a, b)",
  ])("is asked for once it is %j", (text) => expect(isWhole(text)).toBe(true));
});

describe("a small curve", () => {
  test("has a gap where a value is missing and none where there is one", () => {
    expect(pathOf(curveOf([0, 1, null, 1]), 30, 20)).toBe("M0.0 19.0L10.0 1.0M30.0 1.0");
  });

  test("that is flat lies in the middle", () => {
    expect(pathOf(curveOf([2, 2]), 10, 20)).toBe("M0.0 10.0L10.0 10.0");
  });

  test("of nothing is nothing", () => {
    expect(pathOf(curveOf([]), 10, 20)).toBe("");
    expect(pathOf(curveOf(["NaN", null]), 10, 20)).toBe("");
  });
});

test("what was offered for an earlier text and does not go with the word any more is not taken by Tab", () => {
  const of = (...texts: string[]) => texts.map((text) => ({ text, kind: "param", about: "" }));
  const before = of("params.adam ", "params.batch_size ", 'params."big one" ');
  expect(fitting(before, "params.b", 8)).toEqual(of("params.batch_size ", 'params."big one" '));
  expect(fitting(before, "batch", 5)).toEqual(of("params.batch_size "));
  expect(fitting(before, "params.batch_size ", 18)).toEqual([]);
  expect(fitting(of("'32' ", "'64' "), "params.batch_size = 6", 21)).toEqual(of("'64' "));
});

describe("a pipeline in the list", () => {
  const states = (given: Record<string, number>) => given;

  test("is named without the date of its folder", () => {
    expect(nameOf("2026-11-15_D_moons")).toBe("moons");
    expect(nameOf("moons")).toBe("moons");
  });

  test("stands as its runs say while it has not spoken itself", () => {
    expect(stateBy(states({ finished: 3, submitted: 1, failed: 1 }))).toBe("running");
    expect(stateBy(states({ finished: 3, failed: 1, cancelled: 2 }))).toBe("failed");
    expect(stateBy(states({ finished: 3 }))).toBe("finished");
  });

  test("opens: its runs come below its line, and what is below moves down", async () => {
    const head = (id: string, folder: string) => ({
      id,
      pipeline: { id: folder, folder: `/runs/${folder}`, states: { finished: 150 } },
    });
    const plain = (id: string) => ({ id, pipeline: null });
    const asked: unknown[] = [];
    vi.stubGlobal("fetch", async (address: URL | string, given?: { body?: string }) => {
      const path = String(address);
      const body = JSON.parse(given?.body ?? "{}");
      asked.push(path.includes("search") ? [body.filter, body.fold, body.offset] : path);
      if (path.includes("run-groups")) return Response.json({ groups: [], more: false, read_as: "filter", note: "" });
      if (path.includes("pipelines")) return Response.json({ pipelines: [], next: null, problems: [] });
      if (body.fold) return Response.json({ runs: [plain("a"), head("b", "2026-11-15_A_x"), plain("c")], total: 3 });
      const runs = Array.from({ length: body.offset ? 50 : 100 }, (_, at) => plain(`in-${body.offset + at}`));
      return Response.json({ runs, total: body.count ? 150 : null, next: null });
    });
    vi.stubGlobal("window", {
      location: { pathname: "/", search: "", origin: "http://x" },
      addEventListener: () => {},
    });
    const query = { filter: "", order: "created desc", group: "", state: "", archived: false, metrics: [], fold: true };
    const rows = new Rows(query, new Set());
    await rows.start();
    expect(rows.lines).toBe(3);
    const line = rows.line(1);
    expect(line?.kind).toBe("pipeline");
    if (line) rows.toggle(line);
    expect(rows.lines).toBe(153);
    expect(rows.openKeys()).toEqual(["@2026-11-15_A_x"]);
    rows.want(0, 152);
    await vi.waitFor(() => expect(rows.ids()).toHaveLength(152));
    expect(asked).toContainEqual(["pipeline = '/runs/2026-11-15_A_x'", false, 100]);
    const at = (number: number) => {
      const found = rows.line(number);
      return found?.kind === "run" ? found.row?.id : found?.kind;
    };
    expect([0, 1, 2, 151, 152].map(at)).toEqual(["a", "pipeline", "in-0", "in-149", "c"]);
    expect(rows.line(153)).toBeNull();
    const open = rows.line(1);
    if (open) rows.toggle(open);
    expect(rows.lines).toBe(3);
    expect(at(2)).toBe("c");
  });
});
