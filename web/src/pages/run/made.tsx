/** What a run was made of: its command, code, environment and resources. */
import type { ComponentChildren } from "preact";
import { address } from "../../api";
import { bytes, whole } from "../../format";
import { clock } from "./changes";
import { Line } from "./copy";
import type { Overview } from "./feed";

export function Made({ id, told }: { id: string; told: Overview }) {
  const { command, folder, launcher, code, environment, resources, limits, run } = told;
  return (
    <dl class="facts">
      {command && (
        <Fact name="Command">
          <Line text={command} what="the command" />
        </Fact>
      )}
      {folder && (
        <Fact name="Folder">
          <Line text={folder} what="the folder" />
        </Fact>
      )}
      <Code id={id} code={code} />
      {launcher && launcher !== "plain" && <Fact name="Launcher">{launcher}</Fact>}
      {run.source === "onward" && (
        <>
          <Fact name="Resources">{listed(resources) || "the cluster's defaults"}</Fact>
          <Fact name="Limits">{listed(limits) || "none"}</Fact>
        </>
      )}
      <Fact name="Environment">
        {listed(environment) || (run.source === "onward" ? "the environment of the submit command" : "not recorded")}
      </Fact>
      <Fact name="By">
        <bdi>{run.user || "unknown"}</bdi>
        <span class="muted">{SOURCES[run.source] ?? run.source}</span>
      </Fact>
    </dl>
  );
}

const SOURCES: Record<string, string> = {
  onward: "run by Onward",
  "by-hand": "started without Onward, recorded by its script",
  mlflow: "recorded by an MLflow client",
  seed: "recorded by its script",
  tensorboard: "read from TensorBoard's files",
  import: "imported",
};

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Code({ id, code }: { id: string; code: Overview["code"] }) {
  const commit = code.git_commit ? String(code.git_commit) : "";
  const dirty = Boolean(code.git_dirty);
  if (!Object.keys(code).length) return null;
  return (
    <Fact name="Code">
      {commit ? (
        <>
          <Line text={commit} what="the commit" />
          {code.git_branch ? <span class="tag">{String(code.git_branch)}</span> : null}
          {dirty && (
            <a href={address("/api/v1/runs/{run_id}/code-diff", { path: { run_id: id } })}>with uncommitted changes</a>
          )}
        </>
      ) : (
        <span class="muted">not under version control</span>
      )}
      {code.frozen ? (
        <span class="muted">
          frozen at submit, {whole(Number(code.files ?? 0))} {code.files === 1 ? "file" : "files"},{" "}
          {bytes(Number(code.bytes ?? 0))}, from <bdi>{String(code.from ?? "")}</bdi>
        </span>
      ) : null}
    </Fact>
  );
}

const MEMORY = /^mem/;
const TIME = /time$/;

/** `time 24:00:00 · mem 32 GiB`. */
function listed(facts: Readonly<Record<string, unknown>>): string {
  return Object.entries(facts)
    .map(([key, value]) => `${key.replaceAll("_", "-")} ${told(key, value)}`)
    .join(" · ");
}

function told(key: string, value: unknown): string {
  if (typeof value === "number" && TIME.test(key)) return clock(value);
  if (typeof value === "number" && MEMORY.test(key)) return value ? bytes(value * 1024 * 1024) : "all of the node";
  if (Array.isArray(value)) return value.map(String).join(", ");
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}
