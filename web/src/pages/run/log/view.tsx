/** One log with all that can be done with it. */
import { useState } from "preact/hooks";
import { inWords } from "../../../api";
import { flag, number, setParams, text, useParam } from "../../../url";
import type { Stream } from "../logs";
import { useFind } from "./find";
import { useBook } from "./open";
import { Scroller } from "./scroller";
import { Status } from "./status";
import { Tools } from "./tools";

const AT = number(-1);
const FIND = text("");
const WRAP = flag(true);

export type ViewProps = {
  id: string;
  leg: number;
  legs: readonly number[];
  stream: Stream;
  /** Null: there is none of this stream. */
  bytes: number | null;
  growing: boolean;
  ended: string | null;
  choose: (to: { leg?: number; stream?: Stream }) => void;
};

export function LogView(props: ViewProps) {
  const { id, leg, stream, growing } = props;
  const [at] = useParam("at", AT);
  const [find] = useParam("find", FIND);
  const [wrap, setWrap] = useParam("wrap", WRAP);
  const [mark, setMark] = useState<number | null>(at >= 0 ? at : null);
  const [seen, setSeen] = useState(0);
  const follow = at < 0;
  const source = { run: id, leg, stream };
  const opened = useBook(source, follow ? null : at, growing, props.bytes !== null);
  const { book, jump } = opened;
  const found = useFind(props.bytes === null ? null : source, find, book.size);
  /** The leg is named as soon as one looks at a place of it: another one that begins takes nothing away. */
  const stay = (place: number) => setParams({ at: String(place), leg: stream === "supervisor" ? null : String(leg) });
  const show = (place: number | null) => {
    setMark(place);
    if (place === null) setParams({ at: null, leg: leg === props.legs.at(-1) ? null : String(leg) || null });
    else stay(place);
    jump(place);
  };
  const fault = book.fault ? inWords(book.fault) : null;
  return (
    <section class="log" aria-label={`${stream} of leg ${leg}`}>
      <Tools
        {...props}
        source={source}
        find={find}
        found={found}
        seen={seen}
        mark={mark}
        show={show}
        wrap={wrap}
        setWrap={setWrap}
        follow={follow}
      />
      {props.bytes === null || (book.size === 0 && !book.fresh) ? (
        <p class="log-none muted">{none(props)}</p>
      ) : (
        <Scroller
          book={book}
          turn={opened.turn}
          find={find}
          wrap={wrap}
          mark={mark}
          follow={follow}
          goal={opened.goal}
          onSeen={setSeen}
          onRest={(place, end) => {
            if (end) setParams({ at: null, leg: leg === props.legs.at(-1) ? null : String(leg) });
            else stay(place);
          }}
        />
      )}
      {fault && <p class="run-fault">{`${fault.what}. ${fault.next}`}</p>}
      <Status {...props} book={book} seen={seen} follow={follow} show={show} />
    </section>
  );
}

function none({ stream, leg, growing, ended }: ViewProps): string {
  const name = stream === "err" ? "errors" : "output";
  if (stream === "supervisor") return "The supervisor has logged nothing yet.";
  if (growing) return `Leg ${leg} has written no ${name} yet. It appears here as soon as it does.`;
  return `Leg ${leg} wrote no ${name}${ended ? ` (it ended: ${ended.replaceAll("_", " ")})` : ""}.`;
}
