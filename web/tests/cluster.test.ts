import { describe, expect, it } from "vitest";
import {
  asks,
  byMake,
  chosen,
  isSpent,
  type Job,
  many,
  type Node,
  natural,
  offers,
  runOf,
  said,
  shareOf,
} from "../src/pages/cluster/words";

const node = (over: Partial<Node> = {}): Node => ({
  ...{ name: "g1", state: "partly", why: "", cpus: 16, cpus_used: 4, mem: 65536, mem_used: 8192, gpus: [] },
  ...over,
});

const job = (over: Partial<Job> = {}): Job => ({
  ...{ id: "7", name: "digits.1", user: "ada", mine: true, state: "queued", queue: "gpu", tasks: 1, nodes: [] },
  ...{
    submitted: 1,
    started: null,
    ends: null,
    expected_start: null,
    reason: "",
    native: "",
    priority: null,
    factors: "",
    in_line: true,
  },
  asked: { nodes: 1, cpus: 4, mem: 8192, gpus: [{ type: "a100", total: 2, used: 0 }], time: 3600 },
  ...over,
});

describe("nodes", () => {
  it("are as full as what runs out first", () => {
    expect(shareOf(node())).toBe(0.25);
    expect(shareOf(node({ gpus: [{ type: "a100", total: 4, used: 4 }] }))).toBe(1);
    expect(shareOf(node({ cpus: 0 }))).toBe(0);
    expect([node(), node({ cpus_used: 16 }), node({ cpus_used: 16, state: "drained" })].map(isSpent)).toEqual([
      false,
      true,
      false,
    ]);
  });
  it("of one make stand together, those with most GPUs first, by name", () => {
    const gpus = [{ type: "a100", total: 2, used: 0 }];
    const found = byMake([node({ name: "c10" }), node({ name: "c2" }), node({ name: "g1", gpus })]);
    expect(found.map(({ name, nodes }) => [name, nodes.map((one) => one.name)])).toEqual([
      ["2 a100 · 16 CPUs · 64 GiB", ["g1"]],
      ["16 CPUs · 64 GiB", ["c2", "c10"]],
    ]);
  });
  it("are said in a line, with why they take no jobs", () => {
    expect(said(node({ state: "drained", why: "bad DIMM", cpus_used: 0, mem_used: 0 }))).toBe(
      "g1: drained, 0 of 16 CPUs in use, 0 B of 64 GiB – bad DIMM",
    );
  });
});

describe("jobs", () => {
  it("say what they ask for", () => {
    expect(asks(job())).toBe("4 CPUs, 8 GiB, 2 a100");
    expect(asks(job({ asked: { nodes: 3, cpus: 1, mem: null, gpus: [], time: null } }))).toBe("3 nodes, 1 CPU");
  });
  it("are found by queue, node and words, all of them", () => {
    const jobs = [
      job(),
      job({ id: "8", queue: "cpu,gpu", nodes: ["g1"] }),
      job({ id: "9", queue: "cpu", user: "bob" }),
    ];
    const ids = (by: Partial<Parameters<typeof chosen>[1]>) =>
      chosen(jobs, { queue: "", node: "", words: "", ...by }).map(({ id }) => id);
    expect(ids({ queue: "gpu" })).toEqual(["7", "8"]);
    expect(ids({ node: "g1" })).toEqual(["8"]);
    expect(ids({ words: "DIGITS bob" })).toEqual(["9"]);
  });
});

describe("words", () => {
  it("say what could start", () => {
    const opening = {
      queue: "gpu",
      nodes: 2,
      cpus: 16,
      mem: 65536,
      gpus: 2,
      gpu_type: "a100",
      time_limit: null,
      ahead: 0,
    };
    expect(offers(opening)).toBe("2 nodes with 2 a100, 16 CPUs, 64 GiB each");
    expect(offers({ ...opening, nodes: 1, gpus: 1, gpu_type: "", mem: 0 })).toBe("1 GPU, 16 CPUs");
  });
  it("count and sort as people do", () => {
    expect([many(1, "node"), many(2, "node")]).toEqual(["1 node", "2 nodes"]);
    expect(["n10", "n2"].sort(natural)).toEqual(["n2", "n10"]);
  });
});

describe("a job", () => {
  it("names the run that it is a leg of", () => {
    expect(runOf("digits.v2.12.aba1ba60")).toBe("digits.v2");
    expect(runOf("bash")).toBeNull();
    expect(runOf("digits.1")).toBeNull();
  });
});
