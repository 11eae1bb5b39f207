/** A rule, new or changed. */
import { useState } from "preact/hooks";
import { inWords, post, put } from "../../api";
import type { Fault } from "../../reading";
import { FormDialog } from "./formdialog";
import { type Channel, KINDS, type Kind, type Rule, readAfter, shownAfter, told } from "./words";

type Props = { rule: Rule | null; channels: readonly Channel[]; close: () => void; done: () => void };

export function RuleForm({ rule, channels, close, done }: Props) {
  const [kind, setKind] = useState<Kind>(rule?.kind ?? "failed");
  const [name, setName] = useState(rule?.name ?? "");
  const [filter, setFilter] = useState(rule?.filter ?? "");
  const [after, setAfter] = useState(shownAfter(kind, rule?.after ?? null));
  const [chosen, setChosen] = useState<readonly string[]>(rule?.channels ?? channels.slice(0, 1).map(({ id }) => id));
  const [lines, setLines] = useState(rule?.lines ?? false);
  const [fault, setFault] = useState<Fault | null>(null);
  const { after: limit, name: usual } = told(kind);
  const save = async () => {
    const body = {
      kind,
      name: name.trim() || usual,
      filter: kind === "quota" ? "" : filter,
      after: readAfter(kind, after),
      channels: chosen,
      lines: kind === "failed" && lines,
      enabled: rule?.enabled ?? true,
    };
    try {
      if (rule) await put("/api/v1/alerts/rules/{rule}", { path: { rule: rule.id }, body });
      else await post("/api/v1/alerts/rules", { body });
      done();
    } catch (error) {
      setFault(inWords(error));
    }
  };
  return (
    <FormDialog kind="rule" fresh={!rule} fault={fault} save={save} close={close}>
      <label>
        Notify when
        <select
          value={kind}
          onChange={(event) => {
            const to = event.currentTarget.value as Kind;
            setKind(to);
            setAfter(shownAfter(to, null));
          }}
        >
          {KINDS.map((one) => (
            <option key={one.kind} value={one.kind}>
              {one.name}
            </option>
          ))}
        </select>
      </label>
      {limit && (
        <label>
          {limit.label}
          <input
            type="number"
            min="0"
            max={limit.share ? 100 : undefined}
            step="any"
            value={after}
            onInput={(event) => setAfter(event.currentTarget.value)}
          />
        </label>
      )}
      {kind !== "quota" && (
        <label>
          {kind === "metric" ? "Condition" : "Runs"}
          <input
            type="text"
            required={kind === "metric"}
            spellcheck={false}
            placeholder={kind === "metric" ? "metrics.loss > 10" : "all runs, or a filter: experiment = 'night'"}
            value={filter}
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
          <small>Same syntax as the filter of the run list.</small>
        </label>
      )}
      <label>
        Name
        <input
          type="text"
          maxLength={250}
          placeholder={usual}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <fieldset>
        <legend>Channels</legend>
        {!channels.length && <span class="muted">There are no channels yet: add one first.</span>}
        {channels.map(({ id, name: channel }) => (
          <label key={id} class="check">
            <input
              type="checkbox"
              checked={chosen.includes(id)}
              onChange={({ currentTarget }) =>
                setChosen(currentTarget.checked ? [...chosen, id] : chosen.filter((one) => one !== id))
              }
            />
            <bdi>{channel}</bdi>
          </label>
        ))}
      </fieldset>
      {kind === "failed" && (
        <label class="check">
          <input type="checkbox" checked={lines} onChange={(event) => setLines(event.currentTarget.checked)} />
          Include the last lines of the run's output
        </label>
      )}
    </FormDialog>
  );
}
