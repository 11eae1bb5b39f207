/** The rules there are, as sentences. */
import { put, remove } from "../../api";
import { ACTIONS, Rows } from "../../parts/sheet/rows";
import { complain } from "../../parts/toast";
import { EditAndDelete } from "./acts";
import { type Channel, type Rule, sentence } from "./words";

type Props = { rules: readonly Rule[]; channels: readonly Channel[]; open: (id: string) => void; changed: () => void };

export function Rules({ rules, channels, open, changed }: Props) {
  const names = new Map(channels.map(({ id, name }) => [id, name]));
  const turn = async (rule: Rule) => {
    const { id, limit: _, since: __, ...body } = rule;
    try {
      await put("/api/v1/alerts/rules/{rule}", { path: { rule: id }, body: { ...body, enabled: !rule.enabled } });
      changed();
    } catch (error) {
      complain(error);
    }
  };
  return (
    <Rows
      columns={["Name", "Notifies when", "To", ACTIONS]}
      none={
        <p class="muted">
          None yet. A rule says when to notify, for which runs, and through which channels: for example failures to
          Slack, or a loss above 10.
        </p>
      }
    >
      {rules.map((rule) => (
        <tr key={rule.id} class={rule.enabled ? "" : "off"}>
          <th scope="row">
            <bdi>{rule.name}</bdi>
            {!rule.enabled && <small>disabled</small>}
          </th>
          <td class="words">
            {sentence(rule)}
            {rule.filter && (
              <>
                {rule.kind !== "metric" && ", for"} <code>{rule.filter}</code>
              </>
            )}
            {rule.lines && <small>with the last lines of its output</small>}
          </td>
          <td class="words">
            {rule.channels.length ? (
              <bdi>{rule.channels.map((id) => names.get(id) ?? id).join(", ")}</bdi>
            ) : (
              <span class="bad">no channel: choose one</span>
            )}
          </td>
          <td class="acts">
            <button type="button" class="quiet" onClick={() => void turn(rule)}>
              {rule.enabled ? "Disable" : "Enable"}
            </button>
            <EditAndDelete
              kind="rule"
              name={rule.name}
              rest="Its notifications stay in the history."
              edit={() => open(rule.id)}
              drop={() => remove("/api/v1/alerts/rules/{rule}", { path: { rule: rule.id } })}
              changed={changed}
            />
          </td>
        </tr>
      ))}
    </Rows>
  );
}
