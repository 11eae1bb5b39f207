/** Named views: the address of a list as it is set up, kept on the server under a name, for everyone or for oneself. */
import { useEffect, useState } from "preact/hooks";
import { address, type Got, get, put, remove } from "../../api";
import { Icon } from "../../parts/icon";
import { Menu } from "../../parts/menu";
import { complain, say } from "../../parts/toast";
import { go, here, root } from "../../url";

type View = Got<"/api/v1/views">["views"][number];
const PAGE = "runs";

/** `filter`: what the list shows, for those who take it along. */
export function Views({ filter }: { filter: string }) {
  return (
    <Menu
      title="Views"
      end
      label={
        <>
          <Icon name="view" />
          <span class="label">Views</span>
        </>
      }
    >
      {(close) => <Panel close={close} filter={filter} />}
    </Menu>
  );
}

function Panel({ close, filter }: { close: () => void; filter: string }) {
  const [views, setViews] = useState<readonly View[] | null>(null);
  const [name, setName] = useState("");
  const [shared, setShared] = useState(false);
  const load = () =>
    get("/api/v1/views", { query: { page: PAGE } })
      .then((got) => setViews(got.views))
      .catch((error: unknown) => {
        setViews([]);
        complain(error);
      });
  useEffect(() => void load(), []);
  const keep = async (event: Event) => {
    event.preventDefault();
    try {
      await put("/api/v1/views", {
        body: { page: PAGE, name: name.trim(), query: here.value.search.slice(1), shared },
      });
      say(`View saved as “${name.trim()}”`);
      close();
    } catch (error) {
      complain(error);
    }
  };
  return (
    <div class="views">
      <ul>
        {views?.map((view) => (
          <li key={view.id}>
            <a
              class="clip"
              href={`${root}/?${view.query}`}
              onClick={(event) => {
                event.preventDefault();
                go(`${root}/?${view.query}`);
                close();
              }}
            >
              <bdi>{view.name}</bdi>
            </a>
            {view.mine ? view.shared && <small>shared</small> : <small>{view.owner}</small>}
            {view.mine && (
              <button
                type="button"
                class="quiet icon"
                aria-label={`Delete the view ${view.name}`}
                onClick={() => remove("/api/v1/views/{view}", { path: { view: view.id } }).then(load, complain)}
              >
                <Icon name="close" />
              </button>
            )}
          </li>
        ))}
        {views?.length === 0 && (
          <li class="muted">No saved views yet. A view stores filter, columns, order and grouping.</li>
        )}
      </ul>
      <form onSubmit={keep}>
        <input
          type="text"
          required
          maxLength={100}
          placeholder="Save this view as …"
          aria-label="Name of this view"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <button type="submit" disabled={!name.trim()}>
          Save
        </button>
        <label>
          <input type="checkbox" checked={shared} onChange={() => setShared(!shared)} />
          Share with everyone
        </label>
      </form>
      <a class="button quiet" href={address("/api/v1/export/runs", { query: { filter } })} download>
        <Icon name="download" /> Matching runs as CSV
      </a>
      <button
        type="button"
        class="quiet"
        onClick={() => {
          navigator.clipboard?.writeText(window.location.href).then(() => say("Link to this view copied"), complain);
          close();
        }}
      >
        <Icon name="copy" /> Copy link
      </button>
    </div>
  );
}
