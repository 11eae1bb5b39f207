/** A run's files: folder by folder; small ones are looked at here, any is downloaded. */
import { address, type Got, get } from "../../api";
import { ago, bytes, stamp } from "../../format";
import { Empty } from "../../parts/empty";
import { Icon } from "../../parts/icon";
import { useNow } from "../../parts/stale";
import { text, useParam } from "../../url";
import { runPage } from "./address";
import { isOver, useReading, useRun } from "./feed";
import { Preview } from "./preview";
import "./kept.css";

type File = Got<"/api/v1/runs/{run_id}/artifacts">["artifacts"][number];
const PATH = text("");
const FILE = text("");

/** Each part of a path is encoded by itself: its slashes stay slashes. */
export function fileAddress(id: string, path: string): string {
  const base = address("/api/v1/runs/{run_id}/artifacts", { path: { run_id: id } });
  return `${base}/${path.split("/").map(encodeURIComponent).join("/")}`;
}

export default function FilesTab({ id }: { id: string }) {
  const { data: told } = useRun();
  const [folder] = useParam("path", PATH);
  const [open, setOpen] = useParam("file", FILE);
  const now = useNow(30);
  const { data, fault } = useReading(
    id,
    `files ${id} ${folder}`,
    (signal) => get("/api/v1/runs/{run_id}/artifacts", { path: { run_id: id }, query: { path: folder }, signal }),
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
  const files = [...data.artifacts].sort((a, b) => Number(b.is_dir) - Number(a.is_dir) || a.path.localeCompare(b.path));
  const chosen = files.find(({ path }) => path === open);
  if (!files.length && !folder)
    return (
      <Empty title="No files yet">
        Files that the training writes to its run's <code>results/artifacts</code>, logs as MLflow artifacts or uploads
        appear here.
      </Empty>
    );
  return (
    <section class={chosen ? "files open" : "files"} aria-label="Files">
      <div class="files-list">
        <Crumbs id={id} folder={folder} />
        <ul>
          {files.map((file) => (
            <Entry
              key={file.path}
              id={id}
              file={file}
              now={now}
              on={file.path === open}
              open={() => setOpen(file.path)}
            />
          ))}
          {!files.length && <li class="muted">This folder is empty.</li>}
        </ul>
      </div>
      {chosen && <Preview key={chosen.path} id={id} file={chosen} close={() => setOpen("")} />}
    </section>
  );
}

function Crumbs({ id, folder }: { id: string; folder: string }) {
  const parts = folder.split("/").filter(Boolean);
  return (
    <nav class="crumbs" aria-label="Folder">
      <a href={runPage(id, "files")} aria-current={parts.length ? undefined : "page"}>
        artifacts
      </a>
      {parts.map((part, at) => (
        <span key={parts.slice(0, at + 1).join("/")}>
          {" / "}
          <a href={runPage(id, "files", { path: parts.slice(0, at + 1).join("/") })}>
            <bdi>{part}</bdi>
          </a>
        </span>
      ))}
    </nav>
  );
}

type EntryProps = { id: string; file: File; now: number; on: boolean; open: () => void };

function Entry({ id, file, now, on, open }: EntryProps) {
  const name = file.path.split("/").at(-1) ?? file.path;
  return (
    <li class={on ? "on" : ""}>
      {file.is_dir ? (
        <a class="file-name" href={runPage(id, "files", { path: file.path })}>
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
      <span class="muted" title={stamp(file.created)}>
        {file.stored ? ago(file.created, now) : "not stored"}
      </span>
      {file.stored && !file.is_dir ? (
        <a class="button quiet icon" href={fileAddress(id, file.path)} download={name} aria-label={`Download ${name}`}>
          <Icon name="download" />
        </a>
      ) : (
        <span />
      )}
    </li>
  );
}
