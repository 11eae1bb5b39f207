/** One request: how it stands, what it asked for, what it was answered, and every message that went out. */
import { get, post } from "../../api";
import { ago, stamp, when } from "../../format";
import { Badge } from "../../parts/badge";
import { Progress } from "../../parts/progress";
import { DetailHead, DetailPage } from "../../parts/sheet/detail";
import { Sure } from "../../parts/sheet/sure";
import { useNow } from "../../parts/stale";
import { say } from "../../parts/toast";
import { useReading } from "../../reading";
import "./requests.css";
import { href } from "../../url";
import { Answer } from "./answer";
import { Asked } from "./asked";
import { Messages } from "./messages";
import { badge, type Details, deadline, isOpen, reply, took } from "./words";

const EVERY = 3000;

export function One({ id }: { id: string }) {
  const reading = useReading(
    `request ${id}`,
    (signal) => get("/api/v1/requests/{id}", { path: { id }, signal }),
    EVERY,
  );
  return (
    <DetailPage one="request" all="Requests" reading={reading}>
      {(told) => (
        <div class="sheet narrow requests">
          <Head told={told} again={reading.again} />
          <Answer told={told} />
          <Asked told={told} />
          <Messages told={told} />
        </div>
      )}
    </DetailPage>
  );
}

type Act = { told: Details; again: () => void };

function Head({ told, again }: Act) {
  const now = useNow(1);
  const answer = reply(told);
  const open = isOpen(told);
  return (
    <DetailHead
      all="Requests"
      title={told.id}
      badge={<Badge {...badge(told)} />}
      acts={open && <Cancel told={told} again={again} />}
      facts={[
        [
          "From",
          <>
            <bdi>{told.sender || "unnamed sender"}</bdi>, {told.protocol}
          </>,
        ],
        ["Recipe", <bdi>{told.recipe || "none"}</bdi>],
        ["Run", <Run id={told.run_id} none={open ? "not yet" : "none was started"} />],
        [
          "Received",
          <span title={stamp(told.received)}>{`${when(told.received, now)}, ${ago(told.received, now)}`}</span>,
        ],
        [
          told.settled === null ? "Elapsed" : "Took",
          <>
            {took(told, now)} <small>{deadline(told, now)}</small>
          </>,
        ],
        open && told.fraction !== null && ["Progress", <Progress fraction={told.fraction} state="running" />],
        [
          "Reply",
          <>
            <span class={answer.style}>{answer.words}</span>
            {told.reply?.sent != null && <span title={stamp(told.reply.sent)}>, {ago(told.reply.sent, now)}</span>}
          </>,
        ],
      ]}
    />
  );
}

function Run({ id, none }: { id: string | null; none: string }) {
  if (!id) return <span class="muted">{none}</span>;
  return (
    <a href={href(`/runs/${id}`)}>
      <bdi>{id}</bdi>
    </a>
  );
}

function Cancel({ told, again }: Act) {
  const cancel = async () => {
    await post("/api/v1/requests/{id}/cancel", { path: { id: told.id } });
    say("The request is being cancelled", { next: "its run is stopped and its sender is notified" });
    again();
  };
  if (told.cancel_asked !== null) return <span class="muted">being cancelled</span>;
  return <Sure verb="Cancel" yes="Yes, cancel it" act={cancel} />;
}
