/** One request: how it stands, what it asked for, what it was answered, and every message that went out. */
import { useState } from "preact/hooks";
import { get, post } from "../../api";
import { ago, stamp, when } from "../../format";
import { Badge } from "../../parts/badge";
import { Empty } from "../../parts/empty";
import { Progress } from "../../parts/progress";
import { useNow } from "../../parts/stale";
import { complain, say } from "../../parts/toast";
import { useReading } from "../../reading";
import "../../styles/sheet.css";
import "./requests.css";
import { href } from "../../url";
import { Answer } from "./answer";
import { Asked } from "./asked";
import { Messages } from "./messages";
import { badge, type Details, deadline, isOpen, reply, took } from "./words";

const EVERY = 3000;

export function One({ id }: { id: string }) {
  const { data, fault, again } = useReading(
    `request ${id}`,
    (signal) => get("/api/v1/requests/{id}", { path: { id }, signal }),
    EVERY,
  );
  if (!data)
    return fault ? (
      <Empty title="This request could not be loaded">
        {fault.what}. {fault.next} <a href={href("/requests")}>All requests</a>
      </Empty>
    ) : (
      <p class="empty" role="status">
        Loading …
      </p>
    );
  return (
    <div class="sheet narrow requests">
      <Head told={data} again={again} />
      <Answer told={data} />
      <Asked told={data} />
      <Messages told={data} />
    </div>
  );
}

function Head({ told, again }: { told: Details; again: () => void }) {
  const now = useNow(1);
  const answer = reply(told);
  return (
    <header class="request-head">
      <a href={href("/requests")}>Requests</a>
      <div class="sheet-head">
        <h1>
          <bdi>{told.id}</bdi>
        </h1>
        <Badge {...badge(told)} />
        {isOpen(told) && <Cancel told={told} again={again} />}
      </div>
      <dl class="request-facts">
        <dt>From</dt>
        <dd>
          <bdi>{told.sender || "unnamed sender"}</bdi>, {told.protocol}
        </dd>
        <dt>Recipe</dt>
        <dd>
          <bdi>{told.recipe || "none"}</bdi>
        </dd>
        <dt>Run</dt>
        <dd>
          {told.run_id ? (
            <a href={href(`/runs/${told.run_id}`)}>
              <bdi>{told.run_id}</bdi>
            </a>
          ) : (
            <span class="muted">{isOpen(told) ? "not yet" : "none was started"}</span>
          )}
        </dd>
        <dt>Received</dt>
        <dd title={stamp(told.received)}>
          {when(told.received, now)}, {ago(told.received, now)}
        </dd>
        <dt>{told.settled === null ? "Elapsed" : "Took"}</dt>
        <dd>
          {took(told, now)} <small>{deadline(told, now)}</small>
        </dd>
        {isOpen(told) && told.fraction !== null && (
          <>
            <dt>Progress</dt>
            <dd>
              <Progress fraction={told.fraction} state="running" />
            </dd>
          </>
        )}
        <dt>Reply</dt>
        <dd>
          <span class={answer.style}>{answer.words}</span>
          {told.reply?.sent != null && <span title={stamp(told.reply.sent)}>, {ago(told.reply.sent, now)}</span>}
        </dd>
      </dl>
    </header>
  );
}

function Cancel({ told, again }: { told: Details; again: () => void }) {
  const [sure, setSure] = useState(false);
  const cancel = async () => {
    try {
      await post("/api/v1/requests/{id}/cancel", { path: { id: told.id } });
      say("The request is being cancelled", { next: "its run is stopped and its sender is notified" });
      again();
    } catch (error) {
      complain(error);
    }
    setSure(false);
  };
  if (told.cancel_asked !== null) return <span class="muted">being cancelled</span>;
  if (!sure)
    return (
      <button type="button" class="quiet danger" onClick={() => setSure(true)}>
        Cancel
      </button>
    );
  return (
    <>
      <button type="button" class="danger" onClick={() => void cancel()}>
        Yes, cancel it
      </button>
      <button type="button" class="quiet" onClick={() => setSure(false)}>
        Keep running
      </button>
    </>
  );
}
