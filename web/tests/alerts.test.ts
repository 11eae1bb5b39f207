import { describe, expect, it } from "vitest";
import { KINDS, type Notice, outcome, type Rule, readAfter, sentence, shownAfter } from "../src/pages/alerts/words";

const rule = (kind: Rule["kind"], limit: number): Rule => ({
  id: "1",
  name: "x",
  kind,
  filter: "",
  after: null,
  limit,
  channels: [],
  lines: false,
  enabled: true,
  since: 0,
});
const notice = (more: Partial<Notice>): Notice => ({
  id: 1,
  rule: "r",
  channel: "c",
  run_id: null,
  level: "info",
  title: "t",
  text: "",
  at: 1,
  due: 2,
  tries: 0,
  sent: null,
  error: "",
  ...more,
});

describe("rules in words", () => {
  it("every kind is a sentence", () => {
    expect(sentence(rule("failed", 0))).toBe("a run fails");
    expect(sentence(rule("stalled", 1800))).toBe("a run has logged nothing for 30 min");
    expect(sentence(rule("quota", 0.9))).toBe("disk usage of the runs folder reaches 90 %");
  });
  it("minutes and percent come back as they went", () => {
    for (const { kind, after } of KINDS)
      if (after) expect(readAfter(kind, shownAfter(kind, null))).toBeCloseTo(after.usual);
    expect(shownAfter("quota", 0.95)).toBe("95");
    expect(shownAfter("failed", 5)).toBe("");
    expect(readAfter("stalled", "")).toBeNull();
    expect(readAfter("stalled", "soon")).toBeNull();
  });
});

describe("what became of a notice", () => {
  it("is sent, waits, was tried, or was given up", () => {
    expect(outcome(notice({ sent: 3, due: null })).words).toBe("sent");
    expect(outcome(notice({})).words).toBe("pending");
    expect(outcome(notice({ tries: 2, error: "away" })).words).toBe("tried 2×: away");
    expect(outcome(notice({ due: null, error: "gone" })).words).toBe("failed: gone");
  });
});
