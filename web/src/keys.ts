/** Keys for everything: a part of the page says what its keys do, and the `?` sheet shows what holds right now. */
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

export type Key = {
  /** As `KeyboardEvent.key` says it: `j`, `/`, `Enter`, `ArrowDown`; `Shift+Enter`; two in a row as `g r`. */
  keys: string | readonly string[];
  does: string;
  act: (event: KeyboardEvent) => void;
  /** Also while a person types into a field. */
  always?: boolean;
};
export type Scope = { scope: string; keys: readonly Key[] };

/** Whether the `?` sheet is shown. */
export const sheetOpen = signal(false);
export const scopes = signal<readonly Scope[]>([]);
const SOON = 900; // ms between the two keys of a sequence
let before = { key: "", at: 0 };

/** The keys of a part of the page, from the moment it is seen. Later ones come first. */
export function useKeys(scope: string, keys: readonly Key[]): void {
  const newest = useRef(keys);
  newest.current = keys;
  useLayoutEffect(() => {
    const entry: Scope = {
      scope,
      get keys() {
        return newest.current;
      },
    };
    scopes.value = [...scopes.peek(), entry];
    return () => {
      scopes.value = scopes.peek().filter((one) => one !== entry);
    };
  }, [scope]);
}

export function startKeys(): void {
  document.addEventListener("keydown", pressed);
}

function pressed(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
  const typing = isField(event.target);
  const onControl =
    event.target instanceof HTMLElement && event.target.closest("button, a, summary, [role=menuitem]") !== null;
  const name = event.shiftKey && event.key.length > 1 ? `Shift+${event.key}` : event.key;
  const pair = Date.now() - before.at < SOON ? `${before.key} ${name}` : "";
  const found = find(pair, typing) ?? (onControl && (name === "Enter" || name === " ") ? null : find(name, typing));
  before = typing || found ? { key: "", at: 0 } : { key: name, at: Date.now() };
  if (!found) return;
  event.preventDefault();
  found.act(event);
}

function find(name: string, typing: boolean): Key | null {
  if (!name) return null;
  for (const { keys } of [...scopes.peek()].reverse()) {
    for (const key of keys) if ((!typing || key.always) && [key.keys].flat().includes(name)) return key;
  }
  return null;
}

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button", "range"].includes(target.type);
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
