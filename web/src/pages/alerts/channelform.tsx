/** A channel, new or changed. What it keeps secret goes to the server and does not come back. */
import { useState } from "preact/hooks";
import { inWords, post, put } from "../../api";
import { Dialog } from "../../parts/dialog";
import { Secret } from "../../parts/secret";
import type { Fault } from "../../reading";
import { FormDialog } from "./formdialog";
import { type Mail, MailFields, mailOf } from "./mailfields";
import { type Quiet, QuietFields } from "./quietfields";
import type { Channel } from "./words";

type Props = { channel: Channel | null; close: () => void; done: () => void };
type Kind = Channel["kind"];

export function ChannelForm({ channel, close, done }: Props) {
  const [kind, setKind] = useState<Kind>(channel?.kind ?? "slack");
  const [name, setName] = useState(channel?.name ?? "");
  const [url, setUrl] = useState("");
  const [mail, setMail] = useState<Mail>(mailOf(channel));
  const [quiet, setQuiet] = useState<Quiet | null>(channel?.quiet ?? null);
  const [enabled, setEnabled] = useState(channel?.enabled ?? true);
  const [fault, setFault] = useState<Fault | null>(null);
  const [key, setKey] = useState<string | null>(null);
  const save = async () => {
    const { to, password, ...rest } = mail;
    const own =
      kind === "email"
        ? {
            ...rest,
            port: Number(rest.port),
            to: to.split(/[\s,;]+/).filter(Boolean),
            ...(password ? { password } : {}),
          }
        : url
          ? { url: url.trim() }
          : {};
    const body = { kind, name: name.trim() || kind, quiet, enabled, ...own };
    try {
      const made = channel
        ? await put("/api/v1/alerts/channels/{channel}", { path: { channel: channel.id }, body })
        : await post("/api/v1/alerts/channels", { body });
      if (made.key) setKey(made.key);
      else done();
    } catch (error) {
      setFault(inWords(error));
    }
  };
  if (key)
    return (
      <Dialog title="Signing key for this webhook" close={done}>
        <p>Messages are signed with this key. It is shown only once: copy it to the program that receives them.</p>
        <Secret value={key} label="Signing key" />
        <footer>
          <button type="button" class="primary" onClick={done}>
            Done
          </button>
        </footer>
      </Dialog>
    );
  return (
    <FormDialog kind="channel" fresh={!channel} fault={fault} save={save} close={close}>
      {!channel && (
        <label>
          Kind
          <select value={kind} onChange={(event) => setKind(event.currentTarget.value as Kind)}>
            <option value="slack">Slack, or a compatible webhook</option>
            <option value="email">E-mail</option>
            <option value="webhook">Signed webhook</option>
          </select>
        </label>
      )}
      <label>
        Name
        <input
          type="text"
          maxLength={250}
          placeholder={kind}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      {kind === "email" ? (
        <MailFields mail={mail} set={setMail} known={channel !== null} />
      ) : (
        <label>
          Address
          <input
            type="text"
            required={!channel}
            autocomplete="off"
            spellcheck={false}
            placeholder={channel ? "unchanged" : "https://…"}
            value={url}
            onInput={(event) => setUrl(event.currentTarget.value)}
          />
          <small>
            {kind === "slack" ? "An incoming webhook of your workspace." : "Signed messages are posted there."} It is
            not shown again.
          </small>
        </label>
      )}
      <QuietFields quiet={quiet} set={setQuiet} />
      <label class="check">
        <input type="checkbox" checked={enabled} onChange={(event) => setEnabled(event.currentTarget.checked)} />
        Enabled
      </label>
    </FormDialog>
  );
}
