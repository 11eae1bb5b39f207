/** Words for the filter: what can stand where the cursor is, from the language itself and from what the server has seen. */
import { useEffect, useState } from "preact/hooks";
import { type Got, get } from "../../api";

export type Completion = { text: string; kind: string; about: string };
export type Spot = { from: number; to: number; word: string; after: "start" | "name" | "sign" | "value" };

const SIGNS: readonly (readonly [string, string])[] = [
  ["=", "is"],
  ["!=", "is not"],
  ["<", "less"],
  [">", "more"],
  ["like", "'a%' starts with a"],
  ["in", "('a', 'b') is one of"],
  ["is null", "is not set"],
];
const TOKEN = /'(?:[^'\\]|\\.|'')*'?|"[^"]*"?|`[^`]*`?|[<>=!]+|[(),]|[^\s'"`<>=!(),]+(?:"[^"]*"?|`[^`]*`?)?/g;
const MOST = 12;

/** The word at the cursor, and what stands before it. */
export function wordAt(text: string, at: number): Spot {
  const before = [...text.slice(0, at).matchAll(TOKEN)].map((found) => ({ text: found[0], from: found.index }));
  const last = before[before.length - 1];
  const inside = last !== undefined && last.from + last.text.length === at && !/^[<>=!(),]/.test(last.text);
  const from = inside ? last.from : at;
  const rest = /^[\w./:@-]*/.exec(text.slice(at))?.[0] ?? "";
  const word = text.slice(from, at);
  return {
    from,
    to: inside ? at + rest.length : at,
    word,
    after: placeAfter(before.slice(0, inside ? -1 : undefined).map((one) => one.text)),
  };
}

const LANGUAGE =
  /^[\s(]*(not\b[\s(]*)*((metrics|params|tags)\.|(min|max|last)\(|(state|name|id|user|experiment|cluster|source|reason|created|started|ended|updated|duration|step|leg)\s*($|[<>=!]|\s(like|ilike|in|is|not)\b))/i;

/** Whether a text can be asked for as it stands: words always, a filter once its last comparison is whole. */
export function isWhole(text: string): boolean {
  if (!LANGUAGE.test(text)) return true;
  const { word, after } = wordAt(text, text.length);
  const opened = (text.match(/\(/g)?.length ?? 0) > (text.match(/\)/g)?.length ?? 0);
  return !opened && ((after === "value" && !word) || (after === "sign" && word !== "" && !/^'[^']*$/.test(word)));
}

function placeAfter(words: readonly string[]): Spot["after"] {
  let place: Spot["after"] = "start";
  for (const word of words) {
    if (/^(and|or|not)$/i.test(word) || (word === "(" && place === "start")) place = "start";
    else if (place === "start") place = "name";
    else if (place === "name") place = "sign";
    else if (place === "sign" && word !== "(" && word !== ",") place = "value";
    else if (word === ",") place = "sign";
  }
  return place;
}

function nameBefore(text: string, at: number): string {
  const names = [...text.slice(0, at).matchAll(TOKEN)].map((found) => found[0]);
  for (let back = names.length - 1; back > 0; back--)
    if (/^([<>=!]+|like|in)$/i.test(names[back] ?? "")) return names[back - 1] ?? "";
  return "";
}

export async function complete(text: string, at: number): Promise<readonly Completion[]> {
  const { word, after } = wordAt(text, at);
  const begins = (one: string) => one.startsWith(word.toLowerCase()) && one !== word.toLowerCase();
  switch (after) {
    case "name":
      return SIGNS.filter(([sign]) => begins(sign)).map(([sign, about]) => ({ text: `${sign} `, kind: "sign", about }));
    case "value":
      return ["and", "or"].filter(begins).map((join) => ({ text: `${join} `, kind: "join", about: "" }));
    case "sign":
      return offered(await ask(word, nameBefore(text, at)), word);
    default: {
      const deep = word.length > 1 && !word.includes(".") ? ROOMS.map((room) => ask(`${room}.${word}`)) : [];
      const found = await Promise.all([ask(word), ...deep]);
      return offered(found.flat(), word);
    }
  }
}

/** Of what was offered for an earlier text, what still goes with the word at the cursor: `lr` with `params.lr` too. */
export function fitting(before: readonly Completion[], text: string, at: number): readonly Completion[] {
  const plain = (one: string) => one.replace(/["'`]/g, "").toLowerCase();
  const word = plain(wordAt(text, at).word);
  const begins = ["", ...ROOMS.map((room) => `${room}.`)].map((room) => room + word);
  return word ? before.filter((one) => begins.some((begin) => plain(one.text).startsWith(begin))) : [];
}

function offered(words: readonly Word[], typed: string): Completion[] {
  const wanted = words.filter(({ text }) => text !== typed).slice(0, MOST);
  return wanted.map(({ text, kind, about }) => ({
    text: /[.(]$/.test(text) ? text : `${text} `,
    kind,
    about: about || kind,
  }));
}

type Word = Got<"/api/v1/filter-words">["words"][number];
const known = new Map<string, Promise<readonly Word[]>>();

/** What the server has seen that begins like this; with `of`, among the values of that. Nothing where it cannot say. */
function ask(prefix: string, of = ""): Promise<readonly Word[]> {
  const key = `${of}\n${prefix}`;
  const before = known.get(key);
  if (before) return before;
  const asked = get("/api/v1/filter-words", { query: { prefix, of } })
    .then(({ words }) => words)
    .catch(() => {
      known.delete(key);
      return [];
    });
  if (known.size > 200) known.clear();
  known.set(key, asked);
  return asked;
}

export const ROOMS: readonly Room[] = ["metrics", "params", "tags"];
export type Room = "metrics" | "params" | "tags";

/** A name of the filter as a column is called: `params."my key"` is `params.my key`. */
function bare(name: string): string {
  return name.replace(/^(\w+\.)(["`])(.*)\2$/s, "$1$3");
}

/** Keys that can be columns or groups and begin as a person types: `metrics.loss`, `params.lr` … */
export function useKnownKeys(text: string, rooms: readonly Room[] = ROOMS): readonly string[] {
  const [keys, setKeys] = useState<readonly string[]>([]);
  useEffect(() => {
    let left = false;
    Promise.all(rooms.map((room) => ask(`${room}.${text}`))).then((found) => {
      if (!left) setKeys(found.flat().map((word) => bare(word.text)));
    });
    return () => {
      left = true;
    };
  }, [text, rooms]);
  return keys;
}
