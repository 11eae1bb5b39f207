/** The filter: one line in the filter language, or plain words. Completes what is being typed with what the server knows. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useKeys } from "../../keys";
import { Icon } from "../../parts/icon";
import { type Completion, complete, fitting, isWhole, wordAt } from "./words";

type Props = {
  value: string;
  set: (value: string) => void;
  wrong: { what: string; next: string } | null;
  note: string;
};
const PAUSE = 300; // ms after the last letter

export function FilterBox({ value, set, wrong, note }: Props) {
  const [text, setText] = useState(value);
  const [offered, setOffered] = useState<readonly Completion[]>([]);
  const [chosen, setChosen] = useState(-1);
  const field = useRef<HTMLInputElement>(null);
  const typed = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const begun = useRef(false); // a word, by hand: else Tab goes on to what is next, as everywhere
  const list = useId();
  useEffect(() => {
    if (document.activeElement !== field.current) setText(value);
  }, [value]);
  useKeys("Runs", [{ keys: "/", does: "Filter", act: () => field.current?.select() }]);

  const offer = async (given: string, at: number) => {
    const found = await complete(given, at);
    if (field.current?.value !== given) return;
    setOffered(found);
    setChosen(-1);
  };
  const type = (given: string, at: number) => {
    setText(given);
    setOffered((before) => fitting(before, given, at)); // until the answer for this text is there
    void offer(given, at);
    clearTimeout(typed.current);
    if (isWhole(given)) typed.current = setTimeout(() => set(given), PAUSE);
  };
  const finish = (given: string) => {
    clearTimeout(typed.current);
    setOffered([]);
    set(given);
  };
  const take = (one: Completion) => {
    const now = field.current?.value ?? text; // what is typed, and perhaps not drawn yet
    const word = wordAt(now, field.current?.selectionStart ?? now.length);
    const next = now.slice(0, word.from) + one.text + now.slice(word.to);
    const at = word.from + one.text.length;
    begun.current = false;
    type(next, at);
    requestAnimationFrame(() => field.current?.setSelectionRange(at, at));
  };
  const press = (event: KeyboardEvent) => {
    const { value, selectionStart } = event.currentTarget as HTMLInputElement;
    const first = chosen >= 0 ? offered[chosen] : fitting(offered, value, selectionStart ?? value.length)[0];
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step && offered.length) {
      event.preventDefault();
      setChosen((chosen + step + offered.length + (chosen < 0 && step < 0 ? 1 : 0)) % offered.length);
    } else if (event.key === "Tab" && first && !event.shiftKey && (chosen >= 0 || begun.current)) {
      event.preventDefault();
      take(first);
    } else if (event.key === "Enter") {
      const one = offered[chosen];
      if (one) take(one);
      else finish(text);
    } else if (event.key === "Escape") {
      if (offered.length) setOffered([]);
      else if (text) {
        setText("");
        finish("");
      } else field.current?.blur();
      event.stopPropagation();
    }
  };
  return (
    <div class="filter">
      <div class={wrong ? "filter-field wrong" : "filter-field"}>
        <Icon name="search" />
        <input
          ref={field}
          type="text"
          role="combobox"
          aria-label="Filter runs"
          aria-expanded={offered.length > 0}
          aria-controls={list}
          aria-autocomplete="list"
          aria-activedescendant={chosen >= 0 ? `${list}-${chosen}` : undefined}
          aria-invalid={wrong !== null}
          placeholder="Filter: metrics.loss < 0.5 and state = running, or any text"
          spellcheck={false}
          autocomplete="off"
          value={text}
          onInput={(event) => {
            const { value, selectionStart } = event.currentTarget;
            const word = wordAt(value, selectionStart ?? 0);
            begun.current = word.to > word.from;
            type(value, selectionStart ?? 0);
          }}
          onFocus={(event) => {
            begun.current = false;
            void offer(text, event.currentTarget.selectionStart ?? text.length);
          }}
          onBlur={() => {
            setOffered([]);
            finish(text);
          }}
          onKeyDown={press}
        />
        {text ? (
          <button
            type="button"
            class="quiet icon"
            aria-label="Clear the filter"
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => {
              setText("");
              finish("");
            }}
          >
            <Icon name="close" />
          </button>
        ) : (
          <kbd>/</kbd>
        )}
      </div>
      {offered.length > 0 && (
        <div class="offered" id={list} role="listbox" aria-label="Completions">
          {offered.map((one, at) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
            <div
              key={`${one.kind} ${one.text}`}
              id={`${list}-${at}`}
              role="option"
              tabIndex={-1}
              aria-selected={at === chosen}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => take(one)}
            >
              <bdi class="mono clip">{one.text.trim()}</bdi>
              <small>{one.about}</small>
            </div>
          ))}
        </div>
      )}
      {wrong && (
        <p class="filter-said wrong" role="alert">
          {wrong.what}
          {wrong.next && <small>{wrong.next}</small>}
        </p>
      )}
      {!wrong && note && (
        <p class="filter-said">Not a filter expression: searched as text in name, id, experiment, user and tags.</p>
      )}
    </div>
  );
}
