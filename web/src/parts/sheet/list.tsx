/** A page that lists things: its title, a filter and a search, which stay while rows are read, and the rows. */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { useKeys } from "../../keys";
import type { Reading } from "../../reading";
import "../../styles/sheet.css";
import { NotRead } from "./notread";

type ListProps<T> = {
  /** "Requests"; in lower case it is also the page's class. */
  title: string;
  reading: Reading<T>;
  words: string;
  search: (words: string) => void;
  filter?: ComponentChildren;
  children: (data: T) => ComponentChildren;
};

export function ListPage<T>({ title, reading: { data, fault }, words, search, filter, children }: ListProps<T>) {
  const box = useRef<HTMLInputElement>(null);
  const many = title.toLowerCase();
  useKeys(title, [{ keys: "/", does: "Search", act: () => box.current?.focus() }]);
  return (
    <div class={`sheet narrow ${many}`}>
      <header class="sheet-head">
        <h1>{title}</h1>
        {filter}
        <input
          ref={box}
          type="search"
          placeholder="Search"
          aria-label={`Search ${many}`}
          value={words}
          onInput={(event) => search(event.currentTarget.value)}
        />
      </header>
      {data ? children(data) : <NotRead what={`The ${many}`} fault={fault} />}
    </div>
  );
}

/** The button that shows more rows of a list. */
export function Older({ show }: { show: () => void }) {
  return (
    <button type="button" class="quiet" onClick={show}>
      Show older
    </button>
  );
}
