/** Tokens: who may come in, as what, until when. */
import { type Got, get, remove } from "../../api";
import { ago, NONE, stamp, when } from "../../format";
import { useKeys } from "../../keys";
import { Empty } from "../../parts/empty";
import { NotRead } from "../../parts/sheet/notread";
import { ACTIONS, Rows } from "../../parts/sheet/rows";
import { Sure } from "../../parts/sheet/sure";
import { useNow } from "../../parts/stale";
import { say } from "../../parts/toast";
import { useReading } from "../../reading";
import "../../styles/sheet.css";
import { flag, text, useParam } from "../../url";
import { NewToken } from "./new";

type Token = Got<"/api/v1/tokens">["tokens"][number];

const OPEN = text("");
const ALL = flag();
const COLUMNS = ["Name", "For", "Rights", "Created", "Last used", "Expires", ACTIONS];
const AS: Record<string, string> = {
  user: "a person",
  session: "a login",
  login: "a login link",
  run: "a run",
  agent: "an agent",
  webhook: "a webhook",
};

export default function TokensPage() {
  const { data, fault, again } = useReading("tokens", (signal) => get("/api/v1/tokens", { signal }), 15_000);
  const [open, setOpen] = useParam("new", OPEN);
  const [all, setAll] = useParam("all", ALL);
  const now = useNow(5);
  useKeys("Tokens", [{ keys: "n", does: "New token", act: () => setOpen("1", { push: true }) }]);
  if (!data)
    return (
      <NotRead what="The tokens" fault={fault}>
        {!fault?.next && "An admin creates them here, or with onward token create."}
      </NotRead>
    );
  const stands = ({ revoked, ends }: Token) => revoked === null && (ends === null || ends > now);
  const kept = data.tokens.filter(
    (token) => all || (stands(token) && token.scope !== "run" && token.scope !== "login"),
  );
  const shown = [...kept].sort((one, other) => other.created - one.created);
  const soon = shown.filter((token) => token.ends_soon).length;
  const hidden = data.tokens.length - shown.length;
  return (
    <div class="sheet narrow">
      <header class="sheet-head">
        <h1>Tokens</h1>
        <button type="button" class="quiet" aria-pressed={all} onClick={() => setAll(!all, { push: true })}>
          {all ? "Only valid tokens" : `All tokens${hidden ? ` (${hidden} more)` : ""}`}
        </button>
        <button type="button" class="primary" onClick={() => setOpen("1", { push: true })}>
          New token
        </button>
      </header>
      {soon > 0 && (
        <p role="status">
          {soon === 1 ? "One token expires" : `${soon} tokens expire`} within 14 days. Create a new one before then, and
          revoke the old one once nothing uses it.
        </p>
      )}
      <Rows columns={COLUMNS} none={<Empty title="There are no valid tokens">Each login or script needs one.</Empty>}>
        {shown.map((token) => (
          <Row key={token.id} token={token} stands={stands(token)} now={now} again={again} />
        ))}
      </Rows>
      {open && <NewToken close={() => setOpen("")} made={again} />}
    </div>
  );
}

type RowProps = { token: Token; stands: boolean; now: number; again: () => void };

function Row({ token, stands, now, again }: RowProps) {
  const revoke = async () => {
    await remove("/api/v1/tokens/{id}", { path: { id: token.id } });
    say(`Token ${token.name || token.id} revoked`);
    again();
  };
  const until =
    token.revoked !== null
      ? `revoked ${ago(token.revoked, now)}`
      : token.ends
        ? `${when(token.ends, now)}${token.ends_soon ? " (soon)" : ""}`
        : token.scope === "run"
          ? "with its run"
          : "never";
  return (
    <tr class={stands ? "" : "off"}>
      <th scope="row" class="words">
        <bdi>{token.name || NONE}</bdi>
        <small class="mono">{token.id}</small>
      </th>
      <td>
        {AS[token.scope] ?? token.scope}
        {token.run && <small class="mono">{token.run}</small>}
        {token.cluster && <small>{token.cluster}</small>}
      </td>
      <td>{token.scope === "user" || token.scope === "session" || token.scope === "login" ? token.rights : NONE}</td>
      <td title={stamp(token.created)}>{ago(token.created, now)}</td>
      <td title={stamp(token.last_used)}>{token.last_used === null ? "never" : ago(token.last_used, now)}</td>
      <td title={stamp(token.ends)}>{until}</td>
      <td class="acts">
        {stands && (
          <Sure
            verb="Revoke"
            label={`Revoke ${token.name || token.id}`}
            yes="Yes, revoke it"
            no="Keep it"
            act={revoke}
          />
        )}
      </td>
    </tr>
  );
}
