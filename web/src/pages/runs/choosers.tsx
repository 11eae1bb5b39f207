/** What the list is grouped by, and which metric its small curves draw. */
import { useState } from "preact/hooks";
import { Icon, type IconName } from "../../parts/icon";
import { Menu } from "../../parts/menu";
import { type Room, useKnownKeys } from "./words";

type Props = { value: string; set: (value: string) => void };

const NOT_METRICS: readonly Room[] = ["params", "tags"];
const METRICS: readonly Room[] = ["metrics"];

export function GroupMenu({ value, set }: Props) {
  const usual = ["", "experiment", "state", "user", "cluster"];
  return (
    <Chooser
      icon="group"
      name="Group"
      none="No groups"
      value={value}
      set={set}
      usual={usual}
      rooms={NOT_METRICS}
      find="Find a param or tag"
    />
  );
}

export function CurveMenu({ value, set }: Props) {
  const strip = (id: string) => set(id.replace(/^metrics\./, ""));
  return (
    <Chooser
      icon="compare"
      name="Curve"
      none="No curves"
      value={value && `metrics.${value}`}
      set={strip}
      usual={[""]}
      rooms={METRICS}
      find="Find a metric"
    />
  );
}

type More = Props & {
  icon: IconName;
  name: string;
  none: string;
  usual: readonly string[];
  rooms: readonly Room[];
  find: string;
};

function Chooser(props: More) {
  const { icon, name, value } = props;
  return (
    <Menu
      title={name}
      end
      label={
        <>
          <Icon name={icon} />
          <span class="label">{value ? `${name}: ${value.replace(/^(metrics|params|tags)\./, "")}` : name}</span>
        </>
      }
    >
      {(close) => <Panel {...props} close={close} />}
    </Menu>
  );
}

function Panel({ value, set, usual, rooms, none, find, close }: More & { close: () => void }) {
  const [text, setText] = useState("");
  const keys = useKnownKeys(text, rooms);
  const offered = [...usual, ...(value && !usual.includes(value) && !keys.includes(value) ? [value] : []), ...keys];
  const shown = offered.filter((id) => !text || id.toLowerCase().includes(text.toLowerCase()));
  return (
    <div class="chooser">
      <input
        type="text"
        placeholder={find}
        aria-label={find}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <ul>
        {shown.slice(0, 80).map((id) => (
          <li key={id}>
            <button
              type="button"
              class="quiet"
              aria-pressed={id === value}
              onClick={() => {
                set(id);
                close();
              }}
            >
              {id === value ? <Icon name="check" /> : <span class="no-icon" />}
              <bdi class="clip">{id || none}</bdi>
            </button>
          </li>
        ))}
        {!shown.length && <li class="muted">No matches.</li>}
      </ul>
    </div>
  );
}
