/** Alerts: who is told of what, through which channel, and what was told. */
import { get } from "../../api";
import { useKeys } from "../../keys";
import { NotRead } from "../../parts/sheet/notread";
import { useReading } from "../../reading";
import "../../styles/sheet.css";
import { text, useParam } from "../../url";
import { ChannelForm } from "./channelform";
import { Channels } from "./channels";
import { History } from "./history";
import { RuleForm } from "./ruleform";
import { Rules } from "./rules";

const OPEN = text("");
const NEW = "new";

export default function AlertsPage() {
  const rules = useReading("rules", (signal) => get("/api/v1/alerts/rules", { signal }));
  const channels = useReading("channels", (signal) => get("/api/v1/alerts/channels", { signal }));
  const [rule, setRule] = useParam("rule", OPEN);
  const [channel, setChannel] = useParam("channel", OPEN);
  useKeys("Alerts", [
    { keys: "n", does: "New rule", act: () => setRule(NEW, { push: true }) },
    { keys: "c", does: "New channel", act: () => setChannel(NEW, { push: true }) },
  ]);
  const reached = channels.data?.channels;
  if (!rules.data || !reached) return <NotRead what="The alerts" fault={rules.fault ?? channels.fault} />;
  const openRule = rules.data.rules.find(({ id }) => id === rule);
  const openChannel = reached.find(({ id }) => id === channel);
  const leave = () => {
    setRule("");
    setChannel("");
  };
  const done = () => {
    leave();
    rules.again();
    channels.again();
  };
  return (
    <div class="sheet narrow">
      <header class="sheet-head">
        <h1>Alerts</h1>
      </header>
      <section aria-labelledby="channels">
        <div class="sheet-head">
          <h2 id="channels">Channels</h2>
          <button type="button" onClick={() => setChannel(NEW, { push: true })}>
            New channel
          </button>
        </div>
        <Channels channels={reached} open={(id) => setChannel(id, { push: true })} changed={done} />
      </section>
      <section aria-labelledby="rules">
        <div class="sheet-head">
          <h2 id="rules">Rules</h2>
          <button type="button" class={reached.length ? "primary" : ""} onClick={() => setRule(NEW, { push: true })}>
            New rule
          </button>
        </div>
        <Rules rules={rules.data.rules} channels={reached} open={(id) => setRule(id, { push: true })} changed={done} />
      </section>
      <section aria-labelledby="history">
        <h2 id="history">History</h2>
        <History />
      </section>
      {(rule === NEW || openRule) && <RuleForm rule={openRule ?? null} channels={reached} close={leave} done={done} />}
      {(channel === NEW || openChannel) && <ChannelForm channel={openChannel ?? null} close={leave} done={done} />}
    </div>
  );
}
