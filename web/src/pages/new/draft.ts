/** The run that is being written: its text is the truth, the form a view of it, and the server says what is wrong with it. */
import { signal } from "@preact/signals";
import { type Got, get, post } from "../../api";
import { complain } from "../../parts/toast";
import { type Data, edited, type Value, valueAt } from "./yaml";

export type Checked = Got<"/api/v1/drafts/search", "post">;
export type Problem = Checked["problems"][number];
export type Folder = Got<"/api/v1/drafts/folders">["folders"][number];

export const text = signal(kept("file") ?? "");
export const folder = signal(kept("folder") ?? "");
export const folders = signal<readonly Folder[] | null>(null);
/** Where there is no folder: what to do. */
export const advice = signal("");
/** What the file says, as far as it can be read. */
export const data = signal<Data | null>(null);
export const checked = signal<Checked | null>(null);
/** The server has not spoken yet of what is written now. */
export const checking = signal(true);

const PAUSE = 250; // ms after the last letter
const STARTER = `name: my-run
experiment: my-question
cluster: auto
train:
  command: python train.py --lr {params.lr}
  params:
    lr: 0.001
    seed: 1
  resources:
    time: "24:00:00"
    mem: 8G
    cpus-per-task: 4
  limits:
    max-legs: 40
  checkpoints:
    every: auto
    keep: 3
`;

let asked: AbortController | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;

export async function begin(): Promise<void> {
  try {
    const got = await get("/api/v1/drafts/folders");
    folders.value = got.folders;
    advice.value = got.advice;
  } catch (error) {
    complain(error);
    folders.value = [];
  }
  const first = folders.value[0];
  if (!folder.peek() && first) folder.value = first.path;
  if (!text.peek()) text.value = first?.file ?? STARTER;
  check(0);
}

/** Another text, by the editor. */
export function write(to: string): void {
  text.value = to;
  keep("file", to);
  check();
}

/** Another value, by the form. */
export function setValue(keys: readonly string[], to: Value | undefined): void {
  const before = data.peek();
  if (before) write(edited(text.peek(), before, keys, to));
}

export function valueFor(keys: readonly string[]): Value | undefined {
  return valueAt(data.value ?? {}, keys);
}

export function setFolder(to: string): void {
  folder.value = to;
  keep("folder", to);
  check();
}

/** Start anew from a params file that is there. */
export function beginWith(file: string): void {
  write(file);
}

/** Start anew from the usual file. */
export function startOver(): void {
  write(STARTER);
}

function check(pause = PAUSE): void {
  checking.value = true;
  asked?.abort();
  clearTimeout(timer);
  timer = setTimeout(() => void ask(), pause);
}

async function ask(): Promise<void> {
  const mine = new AbortController();
  asked = mine;
  try {
    const got = await post("/api/v1/drafts/search", {
      body: { file: text.peek(), folder: folder.peek() },
      signal: mine.signal,
    });
    checked.value = got;
    if (got.data) data.value = got.data as Data;
    checking.value = false;
  } catch (error) {
    if (!mine.signal.aborted) complain(error);
  }
}

export async function start(): Promise<string> {
  const made = await post("/api/v1/runs", { body: { file: text.peek(), folder: folder.peek() } });
  if (!("id" in made)) throw new Error("the server did not name the run that it created");
  keep("file", null);
  text.value = "";
  return made.id;
}

/** A page that is loaded anew still has what was written in this window. */
function kept(what: string): string | null {
  try {
    return sessionStorage.getItem(`onward-new-${what}`);
  } catch {
    return null;
  }
}

function keep(what: string, value: string | null): void {
  try {
    if (value === null) sessionStorage.removeItem(`onward-new-${what}`);
    else sessionStorage.setItem(`onward-new-${what}`, value);
  } catch {
    // then it holds until the page is closed
  }
}
