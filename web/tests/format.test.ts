import { describe, expect, test } from "vitest";
import { ago, bytes, duration, num, percent, rough, short, when } from "../src/format";

describe("numbers", () => {
  test.each([
    [null, "–"],
    [0, "0"],
    [0.1 + 0.2, "0.3"],
    [0.001234567, "0.0012346"],
    [12345, "12,345"],
    [-1.5, "−1.5"],
    [1.2e-7, "1.2e−7"],
    [3e12, "3e12"],
    ["NaN", "NaN"],
    ["-Infinity", "−∞"],
  ])("%s reads %s", (given, words) => expect(num(given)).toBe(words));

  test("are short where there is little room", () => {
    expect([short(950), short(12_345), short(1_200_000), short(null)]).toEqual(["950", "12.3 k", "1.2 M", "–"]);
  });

  test("none is a dash and naught is 0", () => {
    expect([percent(null), percent(0), bytes(null), bytes(0)]).toEqual(["–", "0 %", "–", "0 B"]);
    expect(bytes(1536)).toBe("1.5 KiB");
  });
});

describe("times", () => {
  test.each([
    [0, "0 s"],
    [0.4, "<1 s"],
    [59, "59 s"],
    [125, "2 min 5 s"],
    [3600 * 2 + 300, "2 h 05 min"],
    [86400 * 3 + 3600 * 4, "3 d 4 h"],
    [null, "–"],
  ])("%s seconds are %s", (given, words) => expect(duration(given)).toBe(words));

  test("ages have one part", () => {
    expect([rough(30), rough(3599), rough(7200), rough(86400 * 5)]).toEqual(["30 s", "59 min", "2 h", "5 d"]);
    expect(ago(100, 160)).toBe("1 min ago");
  });

  test("of another year say which", () => {
    const at = new Date(2025, 10, 12, 14, 5).getTime() / 1000;
    expect(when(at, new Date(2026, 1, 1).getTime() / 1000)).toBe("2025-11-12 14:05");
    expect(when(at, at)).toBe("14:05");
  });
});
