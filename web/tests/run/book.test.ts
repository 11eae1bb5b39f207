import { expect, test } from "vitest";
import { Book } from "../../src/pages/run/log/book";
import { linesOf } from "../../src/pages/run/log/lines";
import type { Piece } from "../../src/pages/run/log/piece";

const bytes = (text: string) => new TextEncoder().encode(text);

/** A log as the server reads it: whole lines of a range, and the last one without an end. */
class Log {
  text = "";
  asked: [number, number][] = [];
  read = async (offset: number, limit: number): Promise<Piece> => {
    this.asked.push([offset, limit]);
    const data = bytes(this.text);
    const start = offset < 0 ? Math.max(0, data.length + offset) : offset;
    const part = data.subarray(start, start + limit);
    const skip = start === 0 || data[start - 1] === 10 ? 0 : part.indexOf(10) + 1;
    const end = start + part.length >= data.length ? part.length : part.lastIndexOf(10) + 1;
    const whole = part.subarray(skip, end);
    const from = start + skip;
    return { start: from, end: from + whole.length, size: data.length, lines: linesOf(whole, from) };
  };
  open(): Book {
    return new Book(this.read, () => {});
  }
}

function numbered(count: number): string {
  return Array.from({ length: count }, (_, at) => `line ${at}\n`).join("");
}
const texts = (book: Book) => book.lines.map(({ text }) => text);

test("lines know the bytes that they begin at, whatever letters are in them", () => {
  expect(linesOf(bytes("ä\nb\nc"), 10)).toEqual([
    { at: 10, end: 13, text: "ä", whole: true },
    { at: 13, end: 15, text: "b", whole: true },
    { at: 15, end: 16, text: "c", whole: false },
  ]);
});

test("the end is opened first, and what is above is read when it is neared", async () => {
  const log = new Log();
  log.text = numbered(50_000);
  const book = log.open();
  await book.open(null);
  expect(texts(book).at(-1)).toBe("line 49999");
  expect(book.lines.length).toBeLessThanOrEqual(2500);
  const first = book.start;
  await book.more("up");
  expect(book.start).toBeLessThan(first);
  const numbers = texts(book).map((text) => Number(text.slice(5)));
  expect(numbers).toEqual(Array.from(numbers, (_, at) => (numbers[0] as number) + at));
  expect(book.lines.length).toBeLessThanOrEqual(2500);
});

test("reading on downwards leaves no gap and lets go of what is far above", async () => {
  const log = new Log();
  log.text = numbered(50_000);
  const book = log.open();
  await book.open(0);
  for (let turn = 0; turn < 20; turn++) await book.more("down");
  const numbers = texts(book).map((text) => Number(text.slice(5)));
  expect(numbers[0]).toBeGreaterThan(5000);
  expect(numbers).toEqual(Array.from(numbers, (_, at) => (numbers[0] as number) + at));
});

test("a line that is still being written is read again when more of it came", async () => {
  const log = new Log();
  log.text = "one\ntw";
  const book = log.open();
  await book.open(null);
  expect(texts(book)).toEqual(["one", "tw"]);
  log.text += "o\nthree\n";
  await book.grow();
  expect(texts(book)).toEqual(["one", "two", "three"]);
  const before = book.lines;
  await book.grow();
  expect(book.lines).toBe(before);
});

test("a log that was written anew is read anew", async () => {
  const log = new Log();
  log.text = numbered(100);
  const book = log.open();
  await book.open(null);
  log.text = "fresh\n";
  await book.grow();
  expect(texts(book)).toEqual(["fresh"]);
});

test("while one looks elsewhere the log grows and nothing moves", async () => {
  const log = new Log();
  log.text = numbered(50_000);
  const book = log.open();
  await book.open(1000);
  const before = book.lines;
  log.text += "more\n";
  await book.grow();
  expect(book.lines).toBe(before);
  expect(book.size).toBe(bytes(log.text).length);
});
