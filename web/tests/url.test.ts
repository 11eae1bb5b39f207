// @vitest-environment node
import { describe, expect, test, vi } from "vitest";

vi.stubGlobal("document", { querySelector: () => ({ content: "/lab/" }), addEventListener: () => {} });
vi.stubGlobal("window", { location: { pathname: "/lab/runs/a", search: "?x=1" }, addEventListener: () => {} });

const { flag, here, href, list, number, oneOf, root, text } = await import("../src/url");

describe("the address", () => {
  test("is read without the prefix of a proxy, and written with it", () => {
    expect(root).toBe("/lab");
    expect(here.value).toEqual({ path: "/runs/a", search: "?x=1" });
    expect(href("/compare", { runs: "a,b", q: "" })).toBe("/lab/compare?runs=a,b");
  });

  test("says nothing of what is as usual", () => {
    expect(text("x").write("x")).toBeNull();
    expect(number(3).write(3)).toBeNull();
    expect(flag().write(false)).toBeNull();
    expect(list(["a"]).write(["a"])).toBeNull();
    expect(oneOf(["a", "b"], "a").write("a")).toBeNull();
  });

  test.each([[["a", "b"]], [["a,b", "c~d", "~,"]], [[]], [["", "x"]]])("keeps a list as it was: %j", (given) => {
    const codec = list(["other"]);
    expect(codec.read(codec.write(given))).toEqual(given);
  });

  test("that cannot be read is the usual", () => {
    expect(number(3).read("x")).toBe(3);
    expect(number(3).read("")).toBe(3);
    expect(oneOf(["a", "b"], "a").read("c")).toBe("a");
    expect(flag(true).read(null)).toBe(true);
  });
});
