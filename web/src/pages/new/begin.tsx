/** What a new run can begin with: the usual file, a params file of the folder, or another run's frozen code. */
import { useEffect, useState } from "preact/hooks";
import { type Got, get } from "../../api";
import { when } from "../../format";
import { Badge } from "../../parts/badge";
import { Icon } from "../../parts/icon";
import { Menu } from "../../parts/menu";
import { useNow } from "../../parts/stale";
import { href } from "../../url";
import { beginWith, folder, folders, startOver } from "./draft";

type Recent = Got<"/api/v1/runs">["runs"][number];

export function StartFrom() {
  return (
    <Menu
      label={
        <>
          Start from … <Icon name="down" />
        </>
      }
      title="Start from"
      end
    >
      {(close) => <Choices close={close} />}
    </Menu>
  );
}

function Choices({ close }: { close: () => void }) {
  const files = folders.value?.find(({ path }) => path === folder.value)?.files ?? [];
  const recent = useRecent();
  const now = useNow(60);
  const choose = (act: () => void) => () => {
    act();
    close();
  };
  return (
    <div class="start-from">
      <h3>A params file</h3>
      <ul>
        {files.map(({ name, text }) => (
          <li key={name}>
            <button type="button" class="quiet" onClick={choose(() => beginWith(text))}>
              <Icon name="copy" /> <bdi class="mono clip">{name}</bdi>
            </button>
          </li>
        ))}
        <li>
          <button type="button" class="quiet" onClick={choose(startOver)}>
            <Icon name="plus" /> {files.length ? "A new file" : "The usual file"}
          </button>
        </li>
      </ul>
      {recent.length > 0 && (
        <>
          <h3>A clone of a run, with its code as it was</h3>
          <ul>
            {recent.map((run) => (
              <li key={run.id}>
                <a class="button quiet" href={href(`/runs/${encodeURIComponent(run.id)}`, { clone: "1" })}>
                  <bdi class="clip">{run.name}</bdi>
                  <Badge state={run.state} />
                  <small class="muted">{when(run.created, now)}</small>
                </a>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function useRecent(): readonly Recent[] {
  const [recent, setRecent] = useState<readonly Recent[]>([]);
  useEffect(() => {
    const query = { filter: "source = 'onward' and pipeline is null", limit: 6, metrics: "false", params: false };
    get("/api/v1/runs", { query }).then(
      (got) => setRecent(got.runs),
      () => undefined,
    );
  }, []);
  return recent;
}
