/** What mail needs: a server that sends, and who is written to. */
import type { Channel } from "./words";

export type Mail = {
  host: string;
  port: string;
  security: "starttls" | "tls" | "none";
  user: string;
  password: string;
  sender: string;
  to: string;
};

const NONE: Mail = { host: "", port: "587", security: "starttls", user: "", password: "", sender: "", to: "" };

export function mailOf(channel: Channel | null): Mail {
  if (channel?.kind !== "email") return NONE;
  const held = channel.target as Partial<Omit<Mail, "to" | "port">> & { to?: string[]; port?: number };
  return { ...NONE, ...held, port: String(held.port ?? 587), to: (held.to ?? []).join(", "), password: "" };
}

export function MailFields({ mail, set, known }: { mail: Mail; set: (mail: Mail) => void; known: boolean }) {
  const field = (name: keyof Mail, label: string, more: Record<string, unknown> = {}) => (
    <label>
      {label}
      <input
        type="text"
        autocomplete="off"
        value={mail[name]}
        onInput={(event) => set({ ...mail, [name]: event.currentTarget.value })}
        {...more}
      />
    </label>
  );
  return (
    <>
      {field("to", "To", { required: true, placeholder: "ada@lab.org, bob@lab.org" })}
      {field("sender", "From", { required: true, placeholder: "onward@lab.org" })}
      <div class="pair">
        {field("host", "SMTP server", { required: true, placeholder: "smtp.lab.org" })}
        {field("port", "Port", { required: true, inputMode: "numeric", pattern: "[0-9]+" })}
        <label>
          Encryption
          <select
            value={mail.security}
            onChange={(event) => set({ ...mail, security: event.currentTarget.value as Mail["security"] })}
          >
            <option value="starttls">STARTTLS</option>
            <option value="tls">TLS</option>
            <option value="none">none</option>
          </select>
        </label>
      </div>
      <div class="pair">
        {field("user", "User", { placeholder: "none" })}
        {field("password", "Password", {
          type: "password",
          autocomplete: "new-password",
          placeholder: known ? "unchanged" : "",
        })}
      </div>
    </>
  );
}
