/** A run's files: its artifacts, and what the training wrote into its working folder. Small ones are looked at here, any is downloaded. */
import { address, get } from "../../api";
import { ago, bytes, stamp, whole } from "../../format";
import { Empty } from "../../parts/empty";
import { Icon } from "../../parts/icon";
import { useNow } from "../../parts/stale";
import { text, useParam } from "../../url";
import { runPage } from "./address";
import { isOver, useReading, useRun } from "./feed";
import { Preview } from "./preview";
import "./kept.css";

const PAGE = 200;
const SHELVES = ["artifacts", "written"] as const;
export type Shelf = (typeof SHELVES)[number];
export type File = { path: string; is_dir: boolean; bytes: number | null; modified: number | null; stored: boolean };
type Listing = { shelf: Shelf; files: File[]; more: number };

/** What each is called, and the params of its folder and of its file that is looked at. */
const NAMES: Record<Shelf, { words: string; folder: string; file: string }> = {
  artifacts: { words: "artifacts", folder: "path", file: "file" },
  written: { words: "working folder", folder: "in", file: "wrote" },
};
const NONE = text("");

/** Each part of a path is encoded by itself: its slashes stay slashes. */
export function fileAddress(id: string, shelf: Shelf, path: string): string {
  const base = address(`/api/v1/runs/{run_id}/${shelf}`, { path: { run_id: id } });
  return `${base}/${path.split("/").map(encodeURIComponent).join("/")}`;
}

async function read(id: string, shelf: Shelf, path: string, after: string, signal: AbortSignal): Promise<Listing> {
  const run = { run_id: id };
  if (shelf === "artifacts") {
    const told = await get("/api/v1/runs/{run_id}/artifacts", { path: run, query: { path }, signal });
    return { shelf, files: told.artifacts.map((file) => ({ ...file, modified: file.created })), more: 0 };
  }
  const query = { path, after, limit: PAGE };
  const told = await get("/api/v1/runs/{run_id}/written", { path: run, query, signal });
  return { shelf, files: told.files.map((file) => ({ ...file, stored: true })), more: told.more };
}

export default function FilesTab({ id }: { id: string }) {
  const { data: told } = useRun();
  const [path] = useParam("path", NONE);
  const [within] = useParam("in", NONE);
  const [after] = useParam("after", NONE);
  const [file, setFile] = useParam("file", NONE);
  const [wrote, setWrote] = useParam("wrote", NONE);
  const shelves: readonly Shelf[] = path ? ["artifacts"] : within || after ? ["written"] : SHELVES;
  const folder = path || within;
  const { data, fault } = useReading(
    id,
    `files ${id} ${shelves} ${after} ${folder}`,
    (signal) => Promise.all(shelves.map((shelf) => read(id, shelf, folder, after, signal))),
    { every: told && isOver(told.run.state) ? 0 : 15 },
  );
  if (fault && !data)
    return (
      <Empty title="The files could not be loaded">
        {`${fault.what}. ${fault.next} `}
        {folder && <a href={runPage(id, "files")}>Back to the top folder</a>}
      </Empty>
    );
  if (!data) return null;
  const shown = shelves.length > 1 ? data.filter(({ files }) => files.length) : data;
  if (!shown.length)
    return (
      <Empty title="No files yet">
        Files that the training writes to its working folder or to its run's <code>results/artifacts</code>, logs as
        MLflow artifacts or uploads appear here.
      </Empty>
    );
  const open = (shelf: Shelf, name: string) => {
    setFile(shelf === "artifacts" ? name : "");
    setWrote(shelf === "written" ? name : "");
  };
  const looked: Shelf = wrote ? "written" : "artifacts";
  const chosen = data.find(({ shelf }) => shelf === looked)?.files.find((one) => one.path === (wrote || file));
  return (
    <section class={chosen ? "files open" : "files"} aria-label="Files">
      <div>
        {shown.map((listing) => (
          <FileList
            key={listing.shelf}
            id={id}
            listing={listing}
            folder={folder}
            after={after}
            chosen={listing.shelf === looked ? chosen : undefined}
            open={(name) => open(listing.shelf, name)}
          />
        ))}
      </div>
      {chosen && (
        <Preview
          key={`${looked} ${chosen.path}`}
          address={fileAddress(id, looked, chosen.path)}
          file={chosen}
          close={() => open(looked, "")}
        />
      )}
    </section>
  );
}

type ListProps = {
  id: string;
  listing: Listing;
  folder: string;
  after: string;
  chosen: File | undefined;
  open: (path: string) => void;
};

function FileList({ id, listing, folder, after, chosen, open }: ListProps) {
  const now = useNow(30);
  const { shelf, more } = listing;
  const files = [...listing.files].sort((a, b) => Number(b.is_dir) - Number(a.is_dir) || a.path.localeCompare(b.path));
  const here = { [NAMES[shelf].folder]: folder };
  return (
    <div class="files-list">
      <Crumbs id={id} shelf={shelf} folder={folder} />
      <ul>
        {files.map((file) => (
          <Entry
            key={file.path}
            id={id}
            shelf={shelf}
            file={file}
            now={now}
            on={file === chosen}
            open={() => open(file.path)}
          />
        ))}
        {!files.length && <li class="muted">{after ? "No files after these." : "This folder is empty."}</li>}
      </ul>
      {(more > 0 || after) && (
        <p class="files-more">
          {after && <a href={runPage(id, "files", here)}>From the start</a>}
          {more > 0 && (
            <>
              <span class="muted">and {whole(more)} more</span>
              <a href={runPage(id, "files", { ...here, after: nameOf(listing.files.at(-1)?.path ?? "") })}>
                Next {whole(Math.min(PAGE, more))}
              </a>
            </>
          )}
        </p>
      )}
    </div>
  );
}

function Crumbs({ id, shelf, folder }: { id: string; shelf: Shelf; folder: string }) {
  const parts = folder.split("/").filter(Boolean);
  return (
    <nav class="crumbs" aria-label={`Folder of ${NAMES[shelf].words}`}>
      <a href={runPage(id, "files")} aria-current={parts.length ? undefined : "page"}>
        {NAMES[shelf].words}
      </a>
      {parts.map((part, at) => (
        <span key={parts.slice(0, at + 1).join("/")}>
          {" / "}
          <a href={runPage(id, "files", { [NAMES[shelf].folder]: parts.slice(0, at + 1).join("/") })}>
            <bdi>{part}</bdi>
          </a>
        </span>
      ))}
    </nav>
  );
}

function nameOf(path: string): string {
  return path.split("/").at(-1) ?? path;
}

type EntryProps = { id: string; shelf: Shelf; file: File; now: number; on: boolean; open: () => void };

function Entry({ id, shelf, file, now, on, open }: EntryProps) {
  const name = nameOf(file.path);
  return (
    <li class={on ? "on" : ""}>
      {file.is_dir ? (
        <a class="file-name" href={runPage(id, "files", { [NAMES[shelf].folder]: file.path })}>
          <bdi>{name}/</bdi>
        </a>
      ) : file.stored ? (
        <button type="button" class="quiet file-name" onClick={open}>
          <bdi>{name}</bdi>
        </button>
      ) : (
        <span class="file-name" title="The run reported this file, but its content is not on this server">
          <bdi>{file.path}</bdi>
        </span>
      )}
      <span class="muted">{file.is_dir ? "" : bytes(file.bytes)}</span>
      <span class="muted" title={stamp(file.modified)}>
        {file.stored ? ago(file.modified, now) : "not stored"}
      </span>
      {file.stored && !file.is_dir ? (
        <a
          class="button quiet icon"
          href={fileAddress(id, shelf, file.path)}
          download={name}
          aria-label={`Download ${name}`}
        >
          <Icon name="download" />
        </a>
      ) : (
        <span />
      )}
    </li>
  );
}
