/** A params file as text: written from data, and changed in one place without touching the rest, so that comments stay. */

export type Value = string | number | boolean | null | readonly Value[] | { readonly [key: string]: Value };
export type Data = { readonly [key: string]: Value };

const PLAIN = /^[A-Za-z_./~][\w ./~+=:@%,{}()'"$*<>|&;!?-]*$/; // what needs no quotes outside braces
const SIZE = /^[0-9]+[A-Za-z]+$/; // 32G
const RISKY = /: |:$| #|\s$/;
const OTHER = /^(true|false|null|yes|no|on|off|~)$/i; // what YAML, or an older one, would read as something else

export function scalar(value: string | number | boolean | null): string {
  if (typeof value !== "string") return String(value);
  const plain = (PLAIN.test(value) || SIZE.test(value)) && !RISKY.test(value) && !OTHER.test(value);
  return plain ? value : JSON.stringify(value);
}

/** Text that a person typed into a field, as the file would have it: numbers stay numbers. */
export function typed(text: string): Value {
  const given = text.trim();
  if (/^[-+]?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/.test(given)) return Number(given);
  if (given === "true" || given === "false") return given === "true";
  return given;
}

const isMap = (value: Value | undefined): value is Data =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function written(data: Data, indent = ""): string {
  let text = "";
  for (const [key, value] of Object.entries(data)) {
    if (Array.isArray(value) || isMap(value)) {
      const inner = Array.isArray(value)
        ? value
            .map(
              (one) => `${indent}  - ${one !== null && typeof one === "object" ? JSON.stringify(one) : scalar(one)}\n`,
            )
            .join("")
        : written(value as Data, `${indent}  `);
      text += inner
        ? `${indent}${name(key)}:\n${inner}`
        : `${indent}${name(key)}: ${Array.isArray(value) ? "[]" : "{}"}\n`;
    } else text += `${indent}${name(key)}: ${scalar(value as string)}\n`;
  }
  return text;
}

function name(key: string): string {
  return /^[A-Za-z_][\w.-]*$/.test(key) && !OTHER.test(key) ? key : JSON.stringify(key);
}

/** `-` and `_` are alike in a params file's keys. */
export const alike = (one: string, other: string) => one.replaceAll("_", "-") === other.replaceAll("_", "-");

export function valueAt(data: Value | undefined, keys: readonly string[]): Value | undefined {
  let value = data;
  for (const key of keys) {
    if (!isMap(value)) return undefined;
    const found = Object.keys(value).find((one) => alike(one, key));
    value = found === undefined ? undefined : value[found];
  }
  return value;
}

/** The data with one value set; undefined takes it out. */
export function withValue(data: Data, keys: readonly string[], to: Value | undefined): Data {
  const [key = "", ...rest] = keys;
  const found = Object.keys(data).find((one) => alike(one, key)) ?? key;
  const inner = data[found];
  const value = rest.length ? withValue(isMap(inner) ? inner : {}, rest, to) : to;
  const next: Record<string, Value> = { ...data };
  if (value === undefined || (rest.length && isMap(value) && !Object.keys(value).length && !isMap(inner)))
    delete next[found];
  else next[found] = value;
  return next;
}

/** The text with one value set: in its own line where that can be done, else written anew. */
export function edited(text: string, data: Data, keys: readonly string[], to: Value | undefined): string {
  return inPlace(text, keys, to) ?? written(withValue(data, keys, to));
}

type Block = { from: number; to: number; indent: number };
const KEY = /^(\s*)("?)([\w.-]+)\2:(?:\s+(.*?))?(\s+#.*)?$/;

function inPlace(text: string, keys: readonly string[], to: Value | undefined): string | null {
  if (to !== undefined && typeof to === "object" && to !== null) return null;
  const lines = text.replace(/\n$/, "").split("\n");
  let block: Block = { from: 0, to: lines.length, indent: -1 };
  for (const [depth, key] of keys.entries()) {
    const last = depth === keys.length - 1;
    const child = childIndent(lines, block);
    const at = child === null ? -1 : findKey(lines, block, child, key);
    if (at < 0) {
      if (!last || child === null || to === undefined) return last && to === undefined ? text : null;
      lines.splice(endOf(lines, block), 0, `${" ".repeat(child)}${key}: ${scalar(to as string)}`);
      return `${lines.join("\n")}\n`;
    }
    const [, space = "", , , value = "", comment = ""] = KEY.exec(lines[at] ?? "") ?? [];
    const below = belowOf(lines, at, space.length);
    if (!last) {
      if (value) return null;
      block = { from: at + 1, to: below, indent: space.length };
      continue;
    }
    if (/^[[{|>&*]/.test(value) || below > at + 1) return null;
    const label = (lines[at] ?? "").slice(0, (lines[at] ?? "").indexOf(":"));
    if (to === undefined) lines.splice(at, 1);
    else lines[at] = `${label}: ${scalar(to as string)}${comment}`;
    return `${lines.join("\n")}\n`;
  }
  return null;
}

const blank = (line: string | undefined) => !line?.trim() || line.trim().startsWith("#");
const indentOf = (line: string) => line.length - line.trimStart().length;

/** Where what belongs to the key at a line ends. */
function belowOf(lines: readonly string[], at: number, indent: number): number {
  let end = at + 1;
  for (let line = at + 1; line < lines.length; line++) {
    const text = lines[line] ?? "";
    if (blank(text)) continue;
    if (indentOf(text) <= indent) break;
    end = line + 1;
  }
  return end;
}

function childIndent(lines: readonly string[], { from, to, indent }: Block): number | null {
  for (let at = from; at < to; at++) {
    const line = lines[at] ?? "";
    if (!blank(line)) return indentOf(line) > indent ? indentOf(line) : null;
  }
  return indent < 0 ? 0 : null;
}

function findKey(lines: readonly string[], { from, to }: Block, indent: number, key: string): number {
  for (let at = from; at < to; at++) {
    const found = KEY.exec(lines[at] ?? "");
    if (found && found[1]?.length === indent && alike(found[3] ?? "", key)) return at;
  }
  return -1;
}

function endOf(lines: readonly string[], { from, to }: Block): number {
  let end = from;
  for (let at = from; at < to; at++) if (!blank(lines[at])) end = at + 1;
  return end;
}
