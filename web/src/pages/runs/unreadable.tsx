/** Folders that cannot be read as runs, above the list: how many, and on a click which and why. */
import { get } from "../../api";
import { ago, stamp } from "../../format";
import { Icon } from "../../parts/icon";
import { useNow } from "../../parts/stale";
import { useReading } from "../../reading";

const EVERY = 30_000;

export function Unreadable() {
  const { data } = useReading("unreadable folders", (signal) => get("/api/v1/trouble/folders", { signal }), EVERY);
  const now = useNow(10);
  const folders = data?.folders ?? [];
  if (!folders.length) return null;
  return (
    <details class="unreadable">
      <summary>
        <Icon name="right" />
        {folders.length === 1 ? "1 folder cannot be read" : `${folders.length} folders cannot be read`}
      </summary>
      <ul>
        {folders.map(({ folder, reason, since }) => (
          <li key={folder}>
            <code>{folder}</code> <time title={stamp(since)}>{ago(since, now)}</time>
            <p>{reason}</p>
          </li>
        ))}
      </ul>
      <p>Each is read again when it changes. Other folders are not affected.</p>
    </details>
  );
}
