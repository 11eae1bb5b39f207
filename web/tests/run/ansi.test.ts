import { expect, test } from "vitest";
import { overwritten, plain, spans } from "../../src/pages/run/log/ansi";
import { isError, marked } from "../../src/pages/run/log/row";

const ESC = "\x1b";

test("colours and weights become spans, and a reset ends them", () => {
  expect(spans(`a ${ESC}[1;31mbad${ESC}[0m b`)).toEqual([
    { text: "a ", style: {} },
    { text: "bad", style: { bold: true, fore: 1 } },
    { text: " b", style: {} },
  ]);
  expect(spans(`${ESC}[92;44mx${ESC}[39my${ESC}[49mz`).map(({ style }) => style)).toEqual([
    { fore: 10, back: 4 },
    { back: 4 },
    {},
  ]);
});

test("256 colours and true colours are told as CSS, whatever the numbers are", () => {
  expect(spans(`${ESC}[38;5;208mx`)[0]?.style).toEqual({ fore: "rgb(255 135 0)" });
  expect(spans(`${ESC}[48;2;300;0;7mx`)[0]?.style).toEqual({ back: "rgb(255 0 7)" });
  expect(spans(`${ESC}[38;5;244mx`)[0]?.style).toEqual({ fore: "rgb(128 128 128)" });
  expect(spans(`${ESC}[38;5mx`)[0]?.text).toBe("x");
});

test("every other escape is taken out", () => {
  expect(plain(`${ESC}[2K${ESC}[1Gdone${ESC}]8;;http://evil.test${ESC}\\link${ESC}]8;;\x07\x00!`)).toBe("donelink!");
  expect(plain(`${ESC}]0;title never ended`)).toBe("");
  expect(plain("tab\tstays")).toBe("tab\tstays");
});

test("a progress bar shows what it wrote last", () => {
  expect(overwritten("10%\r20%\r30%")).toBe("30%");
  expect(overwritten("30%\r")).toBe("30%");
  expect(overwritten("windows\r")).toBe("windows");
});

test("markup in a log stays text", () => {
  expect(spans("<script>alert(1)</script>")).toEqual([{ text: "<script>alert(1)</script>", style: {} }]);
});

test("what is searched for is marked through colours, in any case", () => {
  const parts = marked(spans(`x Lo${ESC}[31mSS 1 loss`), "loss");
  expect(parts.map(({ text, hit }) => [text, hit])).toEqual([
    ["x ", false],
    ["Lo", true],
    ["SS", true],
    [" 1 ", false],
    ["loss", true],
  ]);
  expect(marked(spans("plain"), "")).toEqual([{ text: "plain", style: {}, hit: false }]);
});

test("lines that look like an error stand out, others do not", () => {
  expect(isError("Traceback (most recent call last):")).toBe(true);
  expect(isError(`${ESC}[31mValueError${ESC}[0m: no`)).toBe(true);
  expect(isError("RuntimeError: CUDA out of memory")).toBe(true);
  expect(isError("error rate 0.1, no errors")).toBe(false);
});
