/** Above a log: which one, search, the first error, wrap, download. */
import { useRef, useState } from "preact/hooks";
import { address } from "../../../api";
import { useKeys } from "../../../keys";
import { Icon } from "../../../parts/icon";
import { complain, say } from "../../../parts/toast";
import { setParams } from "../../../url";
import { STREAMS, type Stream } from "../logs";
import { type Found, firstError, nextMatch } from "./find";
import type { Source } from "./piece";
import type { ViewProps } from "./view";

type Props = ViewProps & {
  source: Source;
  find: string;
  found: Found;
  /** The first line in view. */
  seen: number;
  mark: number | null;
  show: (at: number | null) => void;
  wrap: boolean;
  setWrap: (to: boolean) => void;
  follow: boolean;
};

const ABOUT: Record<Stream, string> = {
  out: "Standard output of the training (o)",
  err: "Standard error of the training (e)",
  supervisor: "Supervisor's log of all legs, and the output of their jobs (v)",
};

export function Tools(props: Props) {
  const { leg, legs, stream, source, find, found, mark, show, wrap, setWrap, choose } = props;
  const field = useRef<HTMLInputElement>(null);
  const [looking, setLooking] = useState(false);
  const here = mark !== null && found.places.includes(mark) ? mark : null;
  const step = async (back: boolean) => {
    if (!find) return field.current?.focus();
    const from = here ?? props.seen;
    const known = back
      ? found.places.findLast((one) => one < from)
      : found.places.find((one) => one > from || (here === null && one === from));
    const beyond = found.more && known === undefined && !back;
    const to = beyond ? await nextMatch(source, find, from + 1, false).catch(complain) : known;
    if (to != null) show(to);
    else if (found.places.length) {
      const around = back ? found.places.at(-1) : found.places[0];
      say(back ? "Search continues from the end" : "Search continues from the beginning");
      show(around ?? null);
    }
  };
  const toError = async () => {
    setLooking(true);
    try {
      const { matches } = await firstError(source);
      if (matches[0]) show(matches[0].line_offset);
      else say(`Nothing in this log looks like an error`, { next: stream === "out" ? "check stderr too" : "" });
    } catch (error) {
      complain(error);
    }
    setLooking(false);
  };
  const other = (by: number) => {
    const to = legs[legs.indexOf(leg) + by];
    if (to !== undefined && stream !== "supervisor") choose({ leg: to });
  };
  useKeys("Log", [
    { keys: "/", does: "Search", act: () => field.current?.focus() },
    { keys: "n", does: "Next match", act: () => void step(false) },
    { keys: "N", does: "Previous match", act: () => void step(true) },
    { keys: "!", does: "First error", act: () => void toError() },
    { keys: "f", does: "Follow the end", act: () => show(null) },
    { keys: "o", does: "stdout", act: () => choose({ stream: "out" }) },
    { keys: "e", does: "stderr", act: () => choose({ stream: "err" }) },
    { keys: "v", does: "Supervisor's log", act: () => choose({ stream: "supervisor" }) },
    { keys: "[", does: "Previous leg", act: () => other(-1) },
    { keys: "]", does: "Next leg", act: () => other(1) },
    { keys: "w", does: "Wrap long lines on or off", act: () => setWrap(!wrap) },
  ]);
  return (
    <div class="log-tools" role="toolbar" aria-label="Choose and search a log">
      <span class="choices">
        {(Object.keys(STREAMS) as Stream[]).map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={stream === one}
            title={ABOUT[one]}
            onClick={() => choose({ stream: one })}
          >
            {STREAMS[one]}
          </button>
        ))}
      </span>
      {stream !== "supervisor" && (
        <label class="log-leg">
          Leg
          <select value={leg} onChange={(event) => choose({ leg: Number(event.currentTarget.value) })}>
            {legs.map((one) => (
              <option key={one} value={one}>
                {one}
                {one === legs.at(-1) ? " (newest)" : ""}
              </option>
            ))}
          </select>
        </label>
      )}
      <form
        class="log-find"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          void step(false);
        }}
      >
        <Icon name="search" />
        <input
          ref={field}
          type="search"
          aria-label="Search this log"
          placeholder="Search"
          value={find}
          onInput={(event) => setParams({ find: event.currentTarget.value || null })}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
            if (event.key === "Enter" && event.shiftKey) {
              event.preventDefault();
              void step(true);
            }
          }}
        />
        {find && <output aria-live="polite">{counted(found, here)}</output>}
        <button
          type="button"
          class="quiet icon"
          aria-label="Previous match"
          title="Previous match (N)"
          disabled={!found.places.length}
          onClick={() => void step(true)}
        >
          <Icon name="up" />
        </button>
        <button
          type="submit"
          class="quiet icon"
          aria-label="Next match"
          title="Next match (n)"
          disabled={!found.places.length}
        >
          <Icon name="down" />
        </button>
      </form>
      <button type="button" title="The first line that looks like an error (!)" onClick={() => void toError()}>
        {looking ? "Searching …" : "First error"}
      </button>
      <button type="button" aria-pressed={wrap} class="turn" onClick={() => setWrap(!wrap)}>
        Wrap
      </button>
      <a
        class="button quiet icon"
        aria-label="Download this log"
        title="Download this log"
        download={`${props.id}-leg-${leg}.${stream}`}
        href={address("/api/v1/runs/{run_id}/logs/{leg}/{stream}/file", {
          path: { run_id: source.run, leg: source.leg, stream: source.stream },
        })}
      >
        <Icon name="download" />
      </a>
    </div>
  );
}

function counted({ places, more, searching, fault }: Found, here: number | null): string {
  if (fault) return fault.what;
  if (searching) return "searching …";
  if (!places.length) return "none";
  const all = `${places.length.toLocaleString("en-US")}${more ? "+" : ""}`;
  return here === null ? `${all} ${places.length === 1 ? "line" : "lines"}` : `${places.indexOf(here) + 1} of ${all}`;
}
