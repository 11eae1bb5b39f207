/** A new run: a form and its params file side by side, checked as one types, with the script that would be queued. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "../../keys";
import { Icon } from "../../parts/icon";
import { complain, say } from "../../parts/toast";
import { go, href, oneOf, useParam } from "../../url";
import { StartFrom } from "./begin";
import { advice, begin, checked, checking, folders, start, text, write } from "./draft";
import { Form } from "./form";
import "./new.css";

const SHOW = oneOf(["file", "script"], "file");

export default function NewRun() {
  const [show, setShow] = useParam("show", SHOW);
  const [starting, setStarting] = useState(false);
  useEffect(() => void begin(), []);
  const problems = checked.value?.problems ?? [];
  const ready = !checking.value && checked.value !== null && problems.length === 0 && !starting;
  const act = async () => {
    if (!ready) return;
    setStarting(true);
    try {
      const id = await start();
      say("The run is queued");
      go(href(`/runs/${encodeURIComponent(id)}`));
    } catch (error) {
      complain(error);
    } finally {
      setStarting(false);
    }
  };
  useKeys("New run", [
    { keys: "f", does: "Show the params file", act: () => setShow("file") },
    { keys: "s", does: "Show the job script", act: () => setShow("script") },
    { keys: "Shift+Enter", does: "Start the run", act: () => void act(), always: true },
  ]);
  return (
    <div class="page new">
      <header class="new-head">
        <h1>New run</h1>
        <p class={problems.length ? "new-said wrong" : "new-said"} role="status">
          {said(problems.length)}
        </p>
        <StartFrom />
        <button type="button" class="primary" disabled={!ready} onClick={() => void act()}>
          {starting ? "Starting …" : "Start the run"}
        </button>
      </header>
      {folders.value?.length === 0 && (
        <p class="new-note" role="note">
          No folder can be used yet. {inCode(advice.value)}
        </p>
      )}
      <div class="new-sides">
        <Form />
        <div class="new-text">
          <div class="tabs" role="tablist" aria-label="The run as text">
            {(["file", "script"] as const).map((one) => (
              <button
                key={one}
                type="button"
                role="tab"
                class="quiet"
                aria-selected={show === one}
                onClick={() => setShow(one)}
              >
                {one === "file" ? "params.yaml" : "Job script"}
              </button>
            ))}
          </div>
          {show === "file" ? <Editor /> : <Script />}
          <Problems />
        </div>
      </div>
    </div>
  );
}

/** What is in backquotes is code. */
function inCode(words: string) {
  return words.split("`").map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part));
}

function said(problems: number): string {
  if (checking.value) return "Checking …";
  if (problems) return problems === 1 ? "1 problem" : `${problems} problems`;
  return checked.value?.run_folder ? "Ready to start" : "";
}

function Editor() {
  const at = useRef<HTMLTextAreaElement>(null);
  const lines = text.value.split("\n").length;
  const wrong = new Set(checked.value?.problems.map(({ line }) => line));
  return (
    <div class="editor">
      <div class="editor-lines" aria-hidden="true">
        {Array.from({ length: lines }, (_, line) => (
          <span key={line} class={wrong.has(line + 1) ? "wrong" : ""}>
            {line + 1}
          </span>
        ))}
      </div>
      <textarea
        ref={at}
        aria-label="params.yaml"
        aria-description="Tab indents; press Escape, then Tab, to leave the editor"
        class="mono"
        wrap="off"
        spellcheck={false}
        autocomplete="off"
        rows={Math.max(lines, 12)}
        value={text.value}
        onInput={(event) => write(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur(); // so that Tab goes on to what is next
          if (event.key !== "Tab" || event.shiftKey) return;
          event.preventDefault();
          event.currentTarget.setRangeText(
            "  ",
            event.currentTarget.selectionStart,
            event.currentTarget.selectionEnd,
            "end",
          );
          write(event.currentTarget.value);
        }}
      />
    </div>
  );
}

function Script() {
  const seen = checked.value;
  if (!seen?.script) return <p class="new-none muted">The script appears here once the file has no problems.</p>;
  const copy = () => navigator.clipboard?.writeText(seen.script).then(() => say("Script copied"), complain);
  return (
    <div class="script">
      <p>
        <code>{seen.command.join(" ")}</code>
        <button type="button" class="quiet icon" aria-label="Copy the script" onClick={copy}>
          <Icon name="copy" />
        </button>
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keys must be able to */}
      <pre tabIndex={0}>{seen.script}</pre>
    </div>
  );
}

function Problems() {
  const seen = checked.value;
  if (!seen?.problems.length && !seen?.notes.length) return null;
  return (
    <ul class="problems">
      {seen.problems.map(({ line, at, problem, hint }) => (
        <li key={`${line} ${at} ${problem}`}>
          {line !== null && <span class="muted">line {line}</span>}
          <span>
            {at && <code>{at}</code>} {problem}
            {hint && <small>{hint}</small>}
          </span>
        </li>
      ))}
      {seen.notes.map((note) => (
        <li key={note} class="muted">
          {note}
        </li>
      ))}
    </ul>
  );
}
