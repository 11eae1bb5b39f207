/** Notices that were sent, and those that wait: newest first. */
import { useState } from "preact/hooks";
import { get } from "../../api";
import { ago, stamp } from "../../format";
import { useNow } from "../../parts/stale";
import { useReading } from "../../reading";
import { href } from "../../url";
import { outcome } from "./words";

const PAGE = 50;

export function History() {
  const now = useNow(5);
  const [limit, setLimit] = useState(PAGE);
  const { data, fault } = useReading(
    `history ${limit}`,
    (signal) => get("/api/v1/alerts/history", { query: { limit }, signal }),
    5000,
  );
  if (!data) return <p class="muted">{fault ? fault.what : "Loading …"}</p>;
  if (!data.notices.length)
    return <p class="muted">None yet. Notifications are listed here, with their delivery status.</p>;
  return (
    <>
      <div class="sheet-scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Notification</th>
              <th scope="col">Rule</th>
              <th scope="col">Channel</th>
              <th scope="col">When</th>
              <th scope="col">Status</th>
            </tr>
          </thead>
          <tbody>
            {data.notices.map((notice) => {
              const { words, style } = outcome(notice);
              return (
                <tr key={notice.id}>
                  <th scope="row" class="words">
                    {notice.run_id ? (
                      <a href={href(`/runs/${notice.run_id}`)}>
                        <bdi>{notice.title}</bdi>
                      </a>
                    ) : (
                      <bdi>{notice.title}</bdi>
                    )}
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
            })}
          </tbody>
        </table>
      </div>
      {data.notices.length === limit && limit < 500 && (
        <p>
          <button type="button" onClick={() => setLimit(Math.min(500, limit + PAGE))}>
            Show older
          </button>
        </p>
      )}
    </>
  );
}
