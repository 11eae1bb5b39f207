/** The list of requests: newest first, by state, with a search over ids, senders and recipes. */
import { useRef, useState } from "preact/hooks";
import { type Got, get } from "../../api";
import { ago, NONE, stamp, whole } from "../../format";
import { Badge } from "../../parts/badge";
import { Empty } from "../../parts/empty";
import { ListPage, Older } from "../../parts/sheet/list";
import { Rows } from "../../parts/sheet/rows";
import { useNow } from "../../parts/stale";
import { useReading } from "../../reading";
import "./requests.css";
import { href, oneOf, text, useParam } from "../../url";
import { badge, deadline, type Row, reply, took } from "./words";

const WORDS = text("");
const SHOWN = ["", "open", "done", "failed", "cancelled", "refused"] as const;
const WHICH = oneOf(SHOWN, "");
const PAGE = 100;
const EVERY = 3000;
const COLUMNS = ["Request", "Recipe", "State", "Run", "Received", "Took", "Reply"];

type Counts = Got<"/api/v1/requests">["counts"];

export function List() {
  const [words, setWords] = useParam("q", WORDS);
  const [which, setWhich] = useParam("state", WHICH);
  const [limit, setLimit] = useState(PAGE);
  const now = useNow(1);
  const reading = useReading(
    `requests ${which} ${words} ${limit}`,
    (signal) => get("/api/v1/requests", { query: { state: which || null, text: words || null, limit }, signal }),
    EVERY,
  );
  const counts = useRef<Counts>({}); // of all requests, whatever is searched for
  if (reading.data) counts.current = reading.data.counts;
  if (counts.current.all === 0) return <None />;
  const filter = (
    <div class="states" role="group" aria-label="States">
      {SHOWN.map((one) => (
        <button
          key={one}
          type="button"
          class="quiet"
          aria-pressed={which === one}
          onClick={() => setWhich(one, { push: true })}
        >
          {one || "all"} <span class="count">{whole(counts.current[one || "all"])}</span>
        </button>
      ))}
    </div>
  );
  return (
    <ListPage title="Requests" reading={reading} words={words} search={setWords} filter={filter}>
      {({ requests, next }) => (
        <>
          <Rows columns={COLUMNS} none={<Empty title="No request matches" />}>
            {requests.map((row) => (
              <Line key={row.id} row={row} now={now} />
            ))}
          </Rows>
          {next !== null && <Older show={() => setLimit(limit + PAGE)} />}
        </>
      )}
    </ListPage>
  );
}

function Line({ row, now }: { row: Row; now: number }) {
  const answer = reply(row);
  return (
    <tr>
      <th scope="row" class="words">
        <a href={href(`/requests/${encodeURIComponent(row.id)}`)}>
          <bdi>{row.id}</bdi>
        </a>
        <small>
          <bdi>{row.sender || "unnamed sender"}</bdi> · {row.protocol}
        </small>
      </th>
      <td>
        <bdi>{row.recipe || NONE}</bdi>
      </td>
      <td class="words state">
        <Badge {...badge(row)} />
        {row.reason && <small title={row.reason}>{row.reason}</small>}
      </td>
      <td class={row.run_id ? "words" : "none"}>
        {row.run_id ? (
          <a href={href(`/runs/${row.run_id}`)}>
            <bdi>{row.run_id}</bdi>
          </a>
        ) : (
          <span class="muted">{NONE}</span>
        )}
      </td>
      <td title={stamp(row.received)}>{ago(row.received, now)}</td>
      <td>
        {took(row, now)}
        <small>{deadline(row, now)}</small>
      </td>
      <td class={`words reply ${answer.style}`}>{answer.words}</td>
    </tr>
  );
}

function None() {
  return (
    <Empty title="There are no requests yet">
      This page lists trainings that other applications request through a message queue, each with its run and its
      answer. <code>onward gateway declare</code> creates the queues, and <code>onward gateway</code> or{" "}
      <code>onward up --gateway</code> serves them. Other runs are in <a href={href("/")}>the run list</a>.
    </Empty>
  );
}
