/** The form: the keys that most runs set, each with what is wrong with it. Whatever else the file says stays. */
import { useEffect, useId, useState } from "preact/hooks";
import { type Got, get } from "../../api";
import { Icon } from "../../parts/icon";
import { checked, data, folder, folders, type Problem, setFolder, setValue, valueFor } from "./draft";
import { alike, typed, type Value } from "./yaml";

type FieldOf = { keys: readonly string[]; label: string; hint?: string; wide?: boolean; choices?: readonly string[] };

const RESOURCES: readonly FieldOf[] = [
  { keys: ["train", "resources", "time"], label: "Time limit of a leg", hint: "24:00:00" },
  { keys: ["train", "resources", "mem"], label: "Memory per node", hint: "32G" },
  { keys: ["train", "resources", "cpus-per-task"], label: "CPUs per task", hint: "8" },
  { keys: ["train", "resources", "gpus"], label: "GPUs", hint: "a100:2" },
  { keys: ["train", "resources", "nodes"], label: "Nodes", hint: "1" },
  { keys: ["train", "resources", "partition"], label: "Partition or queue", hint: "gpu" },
];
const LIMITS: readonly FieldOf[] = [
  { keys: ["train", "limits", "total-time"], label: "Total time of all legs", hint: "7-00:00:00" },
  { keys: ["train", "limits", "max-legs"], label: "Max legs", hint: "1000" },
  { keys: ["train", "limits", "max-restarts"], label: "Max restarts without progress", hint: "3" },
  { keys: ["train", "checkpoints", "every"], label: "Checkpoint every", hint: "auto" },
  { keys: ["train", "checkpoints", "keep"], label: "Checkpoints to keep", hint: "3" },
];
const AROUND: readonly FieldOf[] = [
  {
    keys: ["train", "launcher"],
    label: "Launcher",
    choices: ["", "plain", "srun", "torchrun", "mpirun", "horovodrun"],
  },
  { keys: ["train", "environment", "conda"], label: "Conda environment", hint: "name or folder" },
  { keys: ["train", "environment", "venv"], label: "Virtual environment", hint: "folder" },
];

export function Form() {
  const clusters = useClusters();
  const readable = data.value !== null;
  return (
    <form class="new-form" onSubmit={(event) => event.preventDefault()}>
      <fieldset disabled={!readable}>
        <section>
          <Field keys={["name"]} label="Name" />
          <Field keys={["experiment"]} label="Experiment" hint="same as the name" />
          <Field keys={["cluster"]} label="Cluster" choices={clusters} />
          <FolderField />
          <Field keys={["train", "command"]} label="Command" wide />
        </section>
        <Params />
        <Part title="Resources of each job" fields={RESOURCES} />
        <Part title="Limits and checkpoints" fields={LIMITS} />
        <Part title="Environment and launcher" fields={AROUND} />
      </fieldset>
    </form>
  );
}

function Part({ title, fields }: { title: string; fields: readonly FieldOf[] }) {
  return (
    <section>
      <h2>{title}</h2>
      {fields.map((field) => (
        <Field key={field.keys.join(".")} {...field} />
      ))}
    </section>
  );
}

function problemAt(keys: readonly string[]): Problem | undefined {
  return checked.value?.problems.find(({ at }) => alike(at, keys.join(".")));
}

function shown(value: Value | undefined): string {
  if (value === undefined || value === null) return "";
  return Array.isArray(value) ? value.join(" ") : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** What is typed stays as it was typed while the field has the focus. */
function useTyped(value: string, set: (text: string) => void) {
  const [own, setOwn] = useState<string | null>(null);
  return {
    value: own ?? value,
    onInput: (event: { currentTarget: { value: string } }) => {
      setOwn(event.currentTarget.value);
      set(event.currentTarget.value);
    },
    onBlur: () => setOwn(null),
  };
}

function Field({ keys, label, hint = "", wide = false, choices }: FieldOf) {
  const id = useId();
  const wrong = problemAt(keys);
  const value = shown(valueFor(keys));
  const set = (text: string) =>
    setValue(keys, text.trim() ? (keys[0] === "train" && keys[1] !== "command" ? typed(text) : text) : undefined);
  const given = useTyped(value, set);
  const said = { id, "aria-invalid": wrong !== undefined, "aria-describedby": wrong ? `${id}-wrong` : undefined };
  return (
    <div class={wide ? "field wide" : "field"}>
      <label for={id}>{label}</label>
      {choices ? (
        <select {...said} value={value} onChange={(event) => set(event.currentTarget.value)}>
          {[...new Set([...choices, value])].map((one) => (
            <option key={one} value={one}>
              {one || "usual"}
            </option>
          ))}
        </select>
      ) : wide ? (
        <textarea
          {...said}
          {...given}
          class="mono"
          rows={Math.min(6, 1 + Math.ceil(value.length / 56))}
          spellcheck={false}
        />
      ) : (
        <input {...said} {...given} type="text" placeholder={hint} spellcheck={false} autocomplete="off" />
      )}
      {wrong && (
        <p class="wrong" id={`${id}-wrong`}>
          {wrong.problem}
        </p>
      )}
    </div>
  );
}

function FolderField() {
  const id = useId();
  const wrong = checked.value?.problems.find(
    ({ problem, at }) => at === "folder" || (!at && problem.includes("folder")),
  );
  return (
    <div class="field">
      <label for={id}>Code folder on the server</label>
      <input
        id={id}
        type="text"
        list={`${id}-known`}
        value={folder.value}
        spellcheck={false}
        aria-invalid={wrong !== undefined}
        onInput={(event) => setFolder(event.currentTarget.value)}
      />
      <datalist id={`${id}-known`}>
        {folders.value?.map(({ path }) => (
          <option key={path} value={path} />
        ))}
      </datalist>
      {wrong && <p class="wrong">{wrong.problem}</p>}
    </div>
  );
}

function Params() {
  const all = valueFor(["train", "params"]);
  const rows = Object.entries(typeof all === "object" && all !== null && !Array.isArray(all) ? all : {});
  const [fresh, setFresh] = useState("");
  const add = () => {
    if (!fresh.trim()) return;
    setValue(["train", "params", fresh.trim()], "");
    setFresh("");
  };
  return (
    <section>
      <h2>Params</h2>
      <div class="new-params">
        {rows.map(([key, value]) => (
          <Param key={key} name={key} value={shown(value)} />
        ))}
        <div class="param">
          <input
            type="text"
            class="mono"
            placeholder="new param"
            aria-label="Name of a new param"
            value={fresh}
            onInput={(event) => setFresh(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              event.preventDefault();
              add();
            }}
          />
          <button type="button" disabled={!fresh.trim()} onClick={add}>
            <Icon name="plus" /> Add
          </button>
        </div>
      </div>
    </section>
  );
}

function Param({ name, value }: { name: string; value: string }) {
  const wrong = problemAt(["train", "params", name]);
  const given = useTyped(value, (text) => setValue(["train", "params", name], typed(text)));
  return (
    <div class="param">
      <bdi class="mono clip" title={name}>
        {name}
      </bdi>
      <input
        type="text"
        class="mono"
        aria-label={name}
        aria-invalid={wrong !== undefined}
        spellcheck={false}
        {...given}
      />
      <button
        type="button"
        class="quiet icon"
        aria-label={`Remove ${name}`}
        onClick={() => setValue(["train", "params", name], undefined)}
      >
        <Icon name="close" />
      </button>
      {wrong && <p class="wrong">{wrong.problem}</p>}
    </div>
  );
}

function useClusters(): readonly string[] {
  const [known, setKnown] = useState<Got<"/api/v1/clusters">["clusters"]>([]);
  useEffect(() => {
    get("/api/v1/clusters").then(
      (got) => setKnown(got.clusters),
      () => undefined,
    );
  }, []);
  return ["auto", ...known.filter(({ host }) => host === null).map(({ name }) => name)];
}
