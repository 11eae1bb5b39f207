/** Words for the filter: what can stand where the cursor is, from the language itself and from what the server has seen. */
import { useEffect, useState } from "preact/hooks";
import { type Asked, raw } from "../../api";
import { quoted } from "./columns";

export type Completion = { text: string; kind: "field" | "sign" | "value" | "join"; about: string };
export type Spot = { from: number; to: number; word: string; after: "start" | "name" | "sign" | "value" };

const FIELDS: readonly (readonly [string, string])[] = [
  ["state", "submitted, running, waiting, finished, failed, cancelled"],
  ["name", "the run's name"],
  ["experiment", "its experiment"],
  ["user", "whose it is"],
  ["cluster", "where it runs"],
  ["created", "a date, or '7d' for the last week"],
  ["started", "a date, or '7d'"],
  ["ended", "a date, or '7d'"],
  ["duration", "seconds"],
  ["step", "the last one"],
  ["leg", "the newest one"],
  ["id", "the run's id"],
  ["reason", "what it ended by"],
];
const STATES = ["submitted", "running", "waiting", "finished", "failed", "cancelled"];
const SIGNS: readonly (readonly [string, string])[] = [
  ["=", "is"],
  ["!=", "is not"],
  ["<", "less"],
  [">", "more"],
  ["like", "'a%' begins with a"],
  ["in", "('a', 'b') is one of"],
  ["is null", "has none"],
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
  const begins = (one: string) =>
    one.toLowerCase().startsWith(word.toLowerCase()) && one.toLowerCase() !== word.toLowerCase();
  switch (after) {
    case "name":
      return SIGNS.filter(([sign]) => begins(sign)).map(([sign, about]) => ({ text: `${sign} `, kind: "sign", about }));
    case "value":
      return ["and", "or"].filter(begins).map((join) => ({ text: `${join} `, kind: "join", about: "" }));
    case "sign": {
      const name = nameBefore(text, at);
      const known = name === "state" ? STATES : await valuesOf(name, word);
      return known
        .filter((one) => begins(one) || begins(`'${one}`))
        .slice(0, MOST)
        .map((one) => ({ text: inQuotes(one), kind: "value", about: "" }));
    }
    default: {
      const own = FIELDS.filter(([field]) => begins(field)).map(([field, about]) => ({
        text: `${field} `,
        kind: "field" as const,
        about,
      }));
      const keys = (await keysLike(word)).map((key) => ({
        text: `${asWritten(key)} `,
        kind: "field" as const,
        about: key.split(".")[0] ?? "",
      }));
      return [...own, ...keys].slice(0, MOST);
    }
  }
}

function inQuotes(value: string): string {
  return `${/^[A-Za-z_]\w*$/.test(value) ? value : `'${value.replace(/'/g, "''")}'`} `;
}

function asWritten(key: string): string {
  const dot = key.indexOf(".");
  return `${key.slice(0, dot)}.${quoted(key.slice(dot + 1))}`;
}

type Words = { words: readonly { word: string; kind: string }[] };
const known = new Map<string, Promise<Words>>();

/** What the server has seen that begins like this; nothing where it cannot say. */
function ask(query: Asked["query"]): Promise<Words> {
  const key = JSON.stringify(query);
  const before = known.get(key);
  if (before) return before;
  const asked = raw<Words>("GET", "/api/v1/filter-words", { query: query ?? {} }).catch((): Words => {
    known.delete(key);
    return { words: [] };
  });
  if (known.size > 200) known.clear();
  known.set(key, asked);
  return asked;
}

/** `metrics.loss`, `params.lr`, `tags.team` … whose key holds these letters. */
async function keysLike(text: string): Promise<string[]> {
  const { words } = await ask({ prefix: text });
  return words.map(({ word }) => word).filter((word) => /^(metrics|params|tags)\./.test(word));
}

async function valuesOf(name: string, text: string): Promise<string[]> {
  const { words } = await ask({ of: name, prefix: text.replace(/^'/, "") });
  return words.map(({ word }) => word);
}

/** Keys that can be columns or groups, as a person types. */
export function useKnownKeys(text: string, rooms = /^(metrics|params|tags)\./): readonly string[] {
  const [keys, setKeys] = useState<readonly string[]>([]);
  useEffect(() => {
    let left = false;
    keysLike(text).then((found) => !left && setKeys(found.filter((key) => rooms.test(key))));
    return () => {
      left = true;
    };
  }, [text, rooms]);
  return keys;
}
