import { describe, expect, test } from "vitest";
import { badge, deadline, reply, took, value } from "../src/pages/requests/words";

const row = { state: "running", outcome: null, received: 1000, settled: null, deadline: null, reply: null } as const;
const sent = { made: 1, tries: 1, sent: 2, error: "" };

describe("a request in words", () => {
  test("an open one bears its state, one that is over its outcome", () => {
    expect(badge({ state: "accepted", outcome: null })).toEqual({ state: "submitted", word: "accepted" });
    expect(badge({ state: "submitted", outcome: null })).toEqual({ state: "waiting", word: "queued" });
    expect(badge({ state: "settled", outcome: "done" })).toEqual({ state: "finished", word: "done" });
    expect(badge({ state: "settled", outcome: "out_of_memory" })).toEqual({ state: "failed", word: "out of memory" });
    expect(badge({ state: "refused", outcome: "refused" })).toEqual({ state: "failed", word: "refused" });
  });
  test("its reply comes, waits, fails or was sent", () => {
    expect(reply(row).words).toBe("after the run ends");
    expect(reply({ ...row, state: "settled", outcome: "done", reply: sent }).style).toBe("good");
    expect(reply({ ...row, state: "settled", outcome: "done", reply: { ...sent, sent: null } }).words).toMatch(
      "waiting for",
    );
    const failed = { ...sent, sent: null, tries: 3, error: "no queue" };
    expect(reply({ ...row, state: "settled", outcome: "done", reply: failed })).toEqual({
      words: "tried 3×: no queue",
      style: "bad",
    });
  });
  test("how long it took, and how long it may still take", () => {
    expect(took(row, 1060)).toBe("1 min");
    expect(took({ ...row, settled: 1005 }, 9000)).toBe("5 s");
    expect(took({ ...row, state: "refused", settled: 1000 }, 9000)).toBe("–");
    expect(deadline({ ...row, deadline: 1120 }, 1000)).toBe("2 min left");
    expect(deadline({ ...row, deadline: 900 }, 1000)).toBe("past its deadline");
    expect(deadline({ ...row, state: "settled", outcome: "done", deadline: 1120 }, 1000)).toBe("");
  });
  test("a setting is shown as it was given", () => {
    expect([value("0-06:00"), value(15), value(true)]).toEqual(["0-06:00", "15", "true"]);
  });
});
