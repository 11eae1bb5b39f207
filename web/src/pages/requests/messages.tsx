/** Every message that a request made: progress on the way, and the one reply at its end. */
import { ago, stamp } from "../../format";
import { Rows } from "../../parts/sheet/rows";
import { useNow } from "../../parts/stale";
import type { Details } from "./words";

export function Messages({ told }: { told: Details }) {
  const now = useNow(1);
  if (!told.messages.length) return null;
  return (
    <section aria-labelledby="messages">
      <h2 id="messages">Messages sent</h2>
      <p class="muted">
        To <bdi>{told.reply_to || "nobody"}</bdi>
        {told.correlation_id && (
          <>
            , correlation <bdi class="mono">{told.correlation_id}</bdi>
          </>
        )}
      </p>
      <Rows columns={["Message", "Created", "Sent"]}>
        {told.messages.map((message) => (
          <tr key={message.id}>
            <th scope="row" class="words">
              {message.kind}
              <small class="mono">{message.id}</small>
            </th>
            <td title={stamp(message.made)}>{ago(message.made, now)}</td>
            <td class={message.sent === null ? (message.error ? "bad words" : "muted") : "good"}>
              {message.sent === null
                ? message.error
                  ? `tried ${message.tries}×: ${message.error}`
                  : "waiting for the broker"
                : ago(message.sent, now)}
            </td>
          </tr>
        ))}
      </Rows>
    </section>
  );
}
