/** The numbers a person asks first: how far, when done, what is at risk, how much of the time counted. */
import type { ComponentChildren } from "preact";
import { ago, duration, NONE, num, percent, rough, stamp, when, whole } from "../../format";
import { shownLegLimit } from "../../legs";
import { Progress } from "../../parts/progress";
import { useNow } from "../../parts/stale";
import { isOver, type Overview } from "./feed";
import { Waiting } from "./waiting";

const WAITS = new Set(["submitted", "waiting"]);

export function Tiles({ told }: { told: Overview }) {
  return (
    <dl class="tiles">
      {WAITS.has(told.run.state) && <Waiting id={told.run.id} cluster={told.run.cluster} />}
      <Far told={told} />
      <Finish told={told} />
      <Risk told={told} />
      <Goodput told={told} />
      <Legs told={told} />
    </dl>
  );
}

type Props = { told: Overview };

function Tile({
  name,
  children,
  note,
  title,
}: {
  name: string;
  children: ComponentChildren;
  note?: string;
  title?: string;
}) {
  return (
    <div class="tile" title={title}>
      <dt>{name}</dt>
      <dd>{children}</dd>
      {note && <dd class="note">{note}</dd>}
    </div>
  );
}

function Far({ told }: Props) {
  const { step, total_steps: all, fraction, rate, at } = told.pace;
  const now = useNow(10);
  const over = isOver(told.run.state);
  const speed =
    rate === null
      ? ""
      : rate >= 1
        ? `${num(rate, 3)} ${num(rate, 3) === "1" ? "step" : "steps"} per second`
        : `${duration(1 / rate)} per step`;
  const heard = over || at === null ? "" : `last logged ${ago(at, now)}`;
  const words = step === null ? NONE : all === null ? `step ${whole(step)}` : `step ${whole(step)} of ${whole(all)}`;
  return (
    <Tile name="Progress" note={[words, speed, heard].filter(Boolean).join(" · ")}>
      {fraction === null ? words : <Progress fraction={fraction} state={told.run.state} label={words} />}
    </Tile>
  );
}

function Finish({ told }: Props) {
  const now = useNow(30);
  const { finish, run } = told;
  if (isOver(run.state))
    return (
      <Tile name="Took" note={`ended ${when(run.ended, now)}`} title={stamp(run.ended)}>
        {run.started === null || run.ended === null ? NONE : duration(run.ended - run.started)}
      </Tile>
    );
  if (!finish)
    return (
      <Tile
        name="Expected finish"
        note={
          told.pace.total_steps === null
            ? "unknown: pass the number of steps with init(total_steps=…)"
            : "unknown until a few steps are done"
        }
      >
        {NONE}
      </Tile>
    );
  const legs = finish.legs ? `${finish.legs} more ${finish.legs === 1 ? "leg" : "legs"}` : "in this leg";
  const waits = finish.waiting >= 60 ? `, ${rough(finish.waiting)} of that in queues` : "";
  return (
    <Tile
      name="Expected finish"
      title={`${stamp(finish.at)}. ${finish.words}`}
      note={`${legs}${waits} · ${finish.words}`}
    >
      {when(finish.at, now)} <small>in {duration(finish.at - now)}</small>
    </Tile>
  );
}

function Risk({ told }: Props) {
  const now = useNow();
  const { risk, run } = told;
  const saved = run.checkpoint;
  if (!risk)
    return (
      <Tile name="Work at risk" note={saved ? `saved up to step ${whole(saved.step)}` : "no checkpoint was saved"}>
        none
      </Tile>
    );
  const steps = risk.steps === null ? "" : `${whole(risk.steps)} ${risk.steps === 1 ? "step" : "steps"} `;
  const since =
    risk.since_step === null ? "since the start: no checkpoint yet" : `since step ${whole(risk.since_step)}`;
  return (
    <Tile name="Work at risk" note={`${steps}${since}`} title="What would be lost if the node died now">
      {duration(risk.seconds + Math.max(0, now - told.as_of))}
    </Tile>
  );
}

function Goodput({ told }: Props) {
  const { goodput, allocated, kept, lost, overhead, waited } = told.effort;
  if (!allocated) return null;
  const parts = [`${rough(kept)} saved`, `${rough(lost)} lost`, `${rough(overhead)} setup and saving`];
  const early = kept === 0 && lost === 0;
  const outcome = told.effort.unknown
    ? "only the training knows what was useful"
    : early
      ? "nothing saved yet"
      : lost >= 1
        ? `${duration(lost)} lost`
        : "nothing lost";
  return (
    <Tile
      name="Goodput"
      note={`of ${duration(allocated)} in jobs · ${outcome}`}
      title={`${parts.join(", ")}; plus ${rough(waited)} in queues`}
    >
      {early || goodput === null ? "–" : percent(goodput)}
    </Tile>
  );
}

function Legs({ told }: Props) {
  const { legs, effort, run } = told;
  if (!legs.now && legs.max === null) return null;
  const limit = shownLegLimit(legs);
  const most = limit === null ? "" : `of at most ${limit} · `;
  const gpu = run.gpu_use === null ? "" : ` · GPUs ${percent(run.gpu_use)}`;
  return (
    <Tile name="Leg" note={`${most}${duration(effort.waited)} in queues${gpu}`}>
      {legs.now || "not started"}
    </Tile>
  );
}
