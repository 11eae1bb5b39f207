/** The log that is looked at: opened when it or the place changes, read on while it grows. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Book } from "./book";
import { readPiece, type Source } from "./piece";

const SOON = 1000; // ms between two looks at one that grows
const LATER = 5000;

export type Opened = {
  book: Book;
  turn: number;
  goal: { number: number; at: number | null };
  /** Go to a byte, or (null) to the end. */
  jump: (at: number | null) => void;
};

/** `there`: the log exists; one that does not yet is opened when it does. */
export function useBook(source: Source, at: number | null, growing: boolean, there: boolean): Opened {
  const [turn, next] = useState(0);
  const [goal, setGoal] = useState({ number: 0, at });
  const { run, leg, stream } = source;
  const book = useMemo(
    () =>
      new Book(
        (offset, limit, signal) => readPiece({ run, leg, stream }, offset, limit, signal),
        () => next((count) => count + 1),
      ),
    [run, leg, stream],
  );
  const first = useRef(at);
  first.current = at;
  const jump = (to: number | null) => {
    void book.open(to).then(() => setGoal((old) => ({ number: old.number + 1, at: to })));
  };
  useEffect(() => {
    if (there) jump(first.current);
    return () => book.close();
  }, [book, there]);
  useEffect(() => {
    if (!there) return;
    const timer = setInterval(() => !document.hidden && void book.grow(), growing ? SOON : LATER);
    return () => clearInterval(timer);
  }, [book, growing, there]);
  return { book, turn, goal, jump };
}
