/** The channels there are: where to, whether they work, a test. */
import { useState } from "preact/hooks";
import { post, remove } from "../../api";
import { ACTIONS, Rows } from "../../parts/sheet/rows";
import { complain } from "../../parts/toast";
import { EditAndDelete } from "./acts";
import { type Channel, target } from "./words";

type Props = { channels: readonly Channel[]; open: (id: string) => void; changed: () => void };
type Outcome = { delivered: boolean; words: string };

export function Channels({ channels, open, changed }: Props) {
  const [tested, setTested] = useState<Record<string, Outcome | "asked">>({});
  const test = async (id: string) => {
    setTested((before) => ({ ...before, [id]: "asked" }));
    try {
      const outcome = await post("/api/v1/alerts/channels/{channel}/test", { path: { channel: id } });
      setTested((before) => ({ ...before, [id]: outcome }));
    } catch (error) {
      setTested(({ [id]: _, ...rest }) => rest);
      complain(error);
    }
  };
  return (
    <Rows
      columns={["Name", "Kind", "To", "Quiet", ACTIONS]}
      none={
        <p class="muted">
          None yet. A Slack channel, mail addresses or a program of yours can be told; an admin of this server adds them
          here.
        </p>
      }
    >
      {channels.map((channel) => (
        <tr key={channel.id} class={channel.enabled ? "" : "off"}>
          <th scope="row">
            <bdi>{channel.name}</bdi>
            {!channel.enabled && <small>disabled</small>}
            {!channel.ready && <small class="bad">this server does not have its secret: enter it again</small>}
          </th>
          <td>{channel.kind}</td>
          <td class="words">
            <bdi>{target(channel)}</bdi>
            <Tested outcome={tested[channel.id]} />
          </td>
          <td>
            {channel.quiet ? `${channel.quiet.begins}–${channel.quiet.ends} ${channel.quiet.zone}` : "no quiet hours"}
          </td>
          <td class="acts">
            <button
              type="button"
              aria-label={`Test ${channel.name}`}
              disabled={tested[channel.id] === "asked"}
              onClick={() => void test(channel.id)}
            >
              Test
            </button>{" "}
            <EditAndDelete
              kind="channel"
              name={channel.name}
              rest="Rules that use it will no longer send to it."
              edit={() => open(channel.id)}
              drop={() => remove("/api/v1/alerts/channels/{channel}", { path: { channel: channel.id } })}
              changed={changed}
            />
          </td>
        </tr>
      ))}
    </Rows>
  );
}

function Tested({ outcome }: { outcome: Outcome | "asked" | undefined }) {
  if (!outcome) return null;
  if (outcome === "asked") return <small role="status">sending a test …</small>;
  return (
    <small role="status" class={outcome.delivered ? "good" : "bad"}>
      {outcome.delivered ? "the test was delivered" : `the test was not delivered: ${outcome.words}`}
    </small>
  );
}
