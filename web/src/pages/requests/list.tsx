/** The list of requests: newest first, by state, with a search over ids, senders and recipes. */
import { useState } from "preact/hooks";
import { get } from "../../api";
import { ago, NONE, stamp, whole } from "../../format";
import { useKeys } from "../../keys";
import { Badge } from "../../parts/badge";
import { Empty } from "../../parts/empty";
import { useNow } from "../../parts/stale";
import { useReading } from "../../reading";
import "../../styles/sheet.css";
import "./requests.css";
import { href, oneOf, text, useParam } from "../../url";
import { badge, deadline, type Row, reply, took } from "./words";

const WORDS = text("");
const SHOWN = ["", "open", "done", "failed", "cancelled", "refused"] as const;
const WHICH = oneOf(SHOWN, "");
const PAGE = 100;
const EVERY = 3000;

export function List() {
  const [words, setWords] = useParam("q", WORDS);
  const [which, setWhich] = useParam("state", WHICH);
  const [limit, setLimit] = useState(PAGE);
  const now = useNow(1);
  const { data, fault } = useReading(
    `requests ${which} ${words} ${limit}`,
    (signal) => get("/api/v1/requests", { query: { state: which || null, text: words || null, limit }, signal }),
    EVERY,
  );
  useKeys("Requests", [
    {
      keys: "/",
      does: "Search",
      act: () => document.querySelector<HTMLInputElement>(".sheet input[type=search]")?.focus(),
    },
  ]);
  if (!data)
    return fault ? (
      <Empty title="The requests could not be loaded">
        {fault.what}. {fault.next}
      </Empty>
    ) : (
      <p class="empty" role="status">
        Loading …
      </p>
    );
  if (!data.counts.all) return <None />;
  return (
    <div class="sheet narrow requests">
      <header class="sheet-head">
        <h1>Requests</h1>
        <div class="states" role="group" aria-label="States">
          {SHOWN.map((one) => (
            <button
              key={one}
              type="button"
              class="quiet"
              aria-pressed={which === one}
              onClick={() => setWhich(one, { push: true })}
            >
              {one || "all"} <span class="count">{whole(data.counts[one || "all"])}</span>
            </button>
          ))}
        </div>
        <input
          type="search"
          placeholder="Search"
          aria-label="Search requests"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      </header>
      {data.requests.length ? <Rows rows={data.requests} now={now} /> : <Empty title="No request matches" />}
      {data.next !== null && (
        <button type="button" class="quiet" onClick={() => setLimit(limit + PAGE)}>
          Show older
        </button>
      )}
    </div>
  );
}

function Rows({ rows, now }: { rows: readonly Row[]; now: number }) {
  return (
    <div class="sheet-scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Request</th>
            <th scope="col">Recipe</th>
            <th scope="col">State</th>
            <th scope="col">Run</th>
            <th scope="col">Received</th>
            <th scope="col">Took</th>
            <th scope="col">Reply</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Line key={row.id} row={row} now={now} />
          ))}
        </tbody>
      </table>
    </div>
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
