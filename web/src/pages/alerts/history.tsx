/** Notices that were sent, and those that wait: newest first. */
import { useState } from "preact/hooks";
import { get } from "../../api";
import { ago, stamp } from "../../format";
import { Older } from "../../parts/sheet/list";
import { NotRead } from "../../parts/sheet/notread";
import { Rows } from "../../parts/sheet/rows";
import { useNow } from "../../parts/stale";
import { useReading } from "../../reading";
import { href } from "../../url";
import { type Notice, outcome } from "./words";

const PAGE = 50;
const MOST = 500;
const COLUMNS = ["Notification", "Rule", "Channel", "When", "Status"];

export function History() {
  const now = useNow(5);
  const [limit, setLimit] = useState(PAGE);
  const { data, fault } = useReading(
    `history ${limit}`,
    (signal) => get("/api/v1/alerts/history", { query: { limit }, signal }),
    5000,
  );
  if (!data) return <NotRead what="The history" fault={fault} />;
  const { notices } = data;
  return (
    <>
      <Rows
        columns={COLUMNS}
        none={<p class="muted">None yet. Notifications are listed here, with their delivery status.</p>}
      >
        {notices.map((notice) => (
          <Line key={notice.id} notice={notice} now={now} />
        ))}
      </Rows>
      {notices.length === limit && limit < MOST && <Older show={() => setLimit(Math.min(MOST, limit + PAGE))} />}
    </>
  );
}

function Line({ notice, now }: { notice: Notice; now: number }) {
  const { words, style } = outcome(notice);
  const title = <bdi>{notice.title}</bdi>;
  return (
    <tr>
      <th scope="row" class="words">
        {notice.run_id ? <a href={href(`/runs/${notice.run_id}`)}>{title}</a> : title}
      </th>
      <td>
        <bdi>{notice.rule}</bdi>
      </td>
      <td>
        <bdi>{notice.channel}</bdi>
      </td>
      <td title={stamp(notice.at)}>{ago(notice.at, now)}</td>
      <td class={`words ${style}`}>{words}</td>
    </tr>
  );
}
