/** The address is the state of the view: what a page shows can be bookmarked, shared and gone back to. */
import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";

/** The prefix that a proxy serves the page under; the server writes it into the page. */
export const root = (document.querySelector<HTMLMetaElement>('meta[name="onward-root"]')?.content ?? "").replace(
  /\/$/,
  "",
);

export type Place = { path: string; search: string };

const place = signal<Place>(placeOf(window.location));
export const here: ReadonlySignal<Place> = place;
export const query = computed(() => new URLSearchParams(place.value.search));

function placeOf(at: { pathname: string; search: string }): Place {
  const path = root && at.pathname.startsWith(root) ? at.pathname.slice(root.length) || "/" : at.pathname;
  return { path, search: at.search };
}

/** A link's address: `path` as the routes know it, with its params. */
export function href(path: string, params: Record<string, string | null | undefined> = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value != null && value !== "") given.set(name, value);
  const text = tidy(given);
  return root + path + (text ? `?${text}` : "");
}

/** Go to an address made by `href`. */
export function go(to: string, how: { replace?: boolean } = {}): void {
  if (how.replace) history.replaceState(history.state, "", to);
  else history.pushState(null, "", to);
  place.value = placeOf(window.location);
}

export function setParams(changes: Record<string, string | null>, how: { push?: boolean } = {}): void {
  const params = new URLSearchParams(place.peek().search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) params.delete(name);
    else params.set(name, value);
  }
  const text = tidy(params);
  const to = root + place.peek().path + (text ? `?${text}` : "");
  if (to === window.location.pathname + window.location.search) return;
  go(to, { replace: !how.push });
}

/** Characters that an address may hold as they are stay readable. */
function tidy(params: URLSearchParams): string {
  return params
    .toString()
    .replace(/%2C/g, ",")
    .replace(/%3A/g, ":")
    .replace(/%40/g, "@")
    .replace(/%2F/g, "/")
    .replace(/%7E/g, "~");
}

export type Codec<T> = {
  /** From the address; null: it says nothing. Never throws: what cannot be read is the default. */
  read: (text: string | null) => T;
  /** To the address; null: the default, which needs no saying. */
  write: (value: T) => string | null;
};
export type Setter<T> = (value: T, how?: { push?: boolean }) => void;

/** One value of the view. `push` makes a step that "back" undoes; else the address only follows. */
export function useParam<T>(name: string, codec: Codec<T>): [T, Setter<T>] {
  const text = useMemo(() => computed(() => query.value.get(name)), [name]).value;
  const value = useMemo(() => codec.read(text), [text, codec]);
  const set = useMemo<Setter<T>>(
    () =>
      (to, how = {}) =>
        setParams({ [name]: codec.write(to) }, how),
    [name, codec],
  );
  return [value, set];
}

export const text = (fallback = ""): Codec<string> => ({
  read: (given) => given ?? fallback,
  write: (value) => (value === fallback ? null : value),
});

export const number = (fallback: number): Codec<number> => ({
  read: (given) => {
    const value = given === null || given === "" ? Number.NaN : Number(given);
    return Number.isFinite(value) ? value : fallback;
  },
  write: (value) => (value === fallback ? null : String(value)),
});

export const flag = (fallback = false): Codec<boolean> => ({
  read: (given) => (given === null ? fallback : given === "1"),
  write: (value) => (value === fallback ? null : value ? "1" : "0"),
});

export const oneOf = <const T extends string>(choices: readonly T[], fallback: T): Codec<T> => ({
  read: (given) => choices.find((choice) => choice === given) ?? fallback,
  write: (value) => (value === fallback ? null : value),
});

/** Texts with commas between; a comma inside one is written `~,` and a tilde `~~`. */
export const list = (fallback: readonly string[] = []): Codec<readonly string[]> => ({
  read: (given) => (given === null ? fallback : split(given)),
  write: (value) => (same(value, fallback) ? null : value.map(guarded).join(",")),
});

function guarded(item: string): string {
  return item.replace(/~/g, "~~").replace(/,/g, "~,");
}

function split(given: string): string[] {
  const items: string[] = [];
  let item = "";
  for (let at = 0; at < given.length; at++) {
    if (given[at] === ",") {
      items.push(item);
      item = "";
    } else item += given[at] === "~" ? (given[++at] ?? "") : given[at];
  }
  return given === "" ? [] : [...items, item];
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item, at) => item === other[at]);
}

function followed(event: MouseEvent): string | null {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return null;
  const link = event.composedPath().find((part): part is HTMLAnchorElement => part instanceof HTMLAnchorElement);
  if (!link?.href || link.target || link.hasAttribute("download") || link.hasAttribute("data-native")) return null;
  const to = new URL(link.href);
  const ours = to.origin === window.location.origin && (to.pathname === root || to.pathname.startsWith(`${root}/`));
  const served = /^\/(api|docs|login|assets)(\/|$)/.test(to.pathname.slice(root.length));
  return ours && !served ? to.pathname + to.search : null;
}

/** From now on links of this page change the view instead of loading it anew. */
export function followLinks(): void {
  window.addEventListener("popstate", () => {
    place.value = placeOf(window.location);
  });
  document.addEventListener("click", (event) => {
    const to = followed(event);
    if (to === null) return;
    event.preventDefault();
    if (to !== window.location.pathname + window.location.search) go(to);
    window.scrollTo(0, 0);
  });
}
