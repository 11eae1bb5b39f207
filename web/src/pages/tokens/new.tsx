/** A new token: for whom, what it may, how long. Its secret is shown once. */
import { useState } from "preact/hooks";
import { inWords, post } from "../../api";
import { Dialog } from "../../parts/dialog";
import { Secret } from "../../parts/secret";
import type { Fault } from "../../reading";

const DAY = 86400;
type Rights = "read" | "write" | "admin";
const MAY: Record<Rights, string> = {
  read: "Read only",
  write: "Read, log, start and stop runs",
  admin: "Everything, including tokens",
};

export function NewToken({ close, made }: { close: () => void; made: () => void }) {
  const [name, setName] = useState("");
  const [rights, setRights] = useState<Rights>("write");
  const [days, setDays] = useState("90");
  const [secret, setSecret] = useState("");
  const [fault, setFault] = useState<Fault | null>(null);
  const make = async () => {
    const body = { scope: "user", name: name.trim(), rights, expires_in: days ? Number(days) * DAY : null };
    try {
      const told = await post("/api/v1/tokens", { body });
      setSecret(told.secret);
      made();
    } catch (error) {
      setFault(inWords(error));
    }
  };
  if (secret)
    return (
      <Dialog title="Your new token" close={close}>
        <p>
          It is shown only once. Pass it to a script through <code>MLFLOW_TRACKING_TOKEN</code>,{" "}
          <code>onward.Client(url, token)</code>, or a file of mode 600 that <code>token-file</code> in the settings
          names.
        </p>
        <Secret value={secret} label="Token" />
        <footer>
          <button type="button" class="primary" onClick={close}>
            Done
          </button>
        </footer>
      </Dialog>
    );
  return (
    <Dialog title="New token" close={close}>
      <form
        class="sheet-form"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <label>
          Name
          <input
            type="text"
            maxLength={250}
            placeholder="who or what it is for"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <label>
          Rights
          <select value={rights} onChange={(event) => setRights(event.currentTarget.value as Rights)}>
            {(Object.keys(MAY) as Rights[]).map((one) => (
              <option key={one} value={one}>
                {MAY[one]}
              </option>
            ))}
          </select>
        </label>
        <label>
          Expires
          <select value={days} onChange={(event) => setDays(event.currentTarget.value)}>
            <option value="1">in 1 day</option>
            <option value="30">in 30 days</option>
            <option value="90">in 90 days</option>
            <option value="365">in 1 year</option>
            <option value="">never</option>
          </select>
        </label>
        {fault && <p role="alert">{fault.what}</p>}
        <footer>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Create token
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
