/** When a run that waits will start, as its scheduler expects it, and what stands before it. */
import type { ComponentChildren } from "preact";
import { get } from "../../api";
import { duration, NONE, rough, stamp, when } from "../../format";
import { useNow } from "../../parts/stale";
import { href } from "../../url";
import { useReading } from "./feed";

export function Waiting({ id, cluster }: { id: string; cluster: string | null }) {
  const now = useNow(10);
  const { data, fault } = useReading(
    id,
    `start ${id}`,
    (signal) => get("/api/v1/runs/{run_id}/start", { path: { run_id: id }, signal }),
    { every: 30 },
  );
  if (fault && !data) return <Tile note={`${fault.what}. ${fault.next}`}>{NONE}</Tile>;
  if (!data?.waiting) return null;
  const ahead = data.ahead ? `${data.ahead} ahead of it in ${data.queue || "its queue"}` : "";
  const notes = [data.reason, ahead, data.trouble].filter(Boolean).join(" · ");
  return (
    <Tile note={notes || "the scheduler gives no reason"} title={data.native}>
      {data.expected === null ? (
        "unknown"
      ) : (
        <span title={stamp(data.expected)}>
          {when(data.expected, now)}{" "}
          <small>{data.expected > now ? `in ${duration(data.expected - now)}` : "any moment now"}</small>
        </span>
      )}{" "}
      <small>
        {cluster && <a href={href("/cluster", { cluster })}>cluster</a>}{" "}
        {data.taken_at !== null && now - data.taken_at > 60 && `as of ${rough(now - data.taken_at)} ago`}
      </small>
    </Tile>
  );
}

function Tile({ children, note, title }: { children: ComponentChildren; note: string; title?: string }) {
  return (
    <div class="tile" title={title}>
      <dt>Expected start</dt>
      <dd>{children}</dd>
      <dd class="note">{note}</dd>
    </div>
  );
}
