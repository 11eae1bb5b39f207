/** One run: its header, and a tab for each way to look at it. A tab's code is loaded when it is first opened. */
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { useKeys } from "../../keys";
import { NotLoaded, useLoaded } from "../../loaded";
import { Empty } from "../../parts/empty";
import { Boundary } from "../../parts/fault";
import { Tabs } from "../../parts/tabs";
import type { PageProps } from "../../routes";
import { go, href } from "../../url";
import { runPage } from "./address";
import { RunContext, useOverview } from "./feed";
import { Header } from "./header";
import "./run.css";

type TabPage = ComponentType<{ id: string }>;
type Known = { name: string; key: string; load: () => Promise<{ default: TabPage }> };
const TABS: Record<string, Known> = {
  overview: { name: "Overview", key: "1", load: () => import("./overview") },
  charts: { name: "Charts", key: "2", load: () => import("./charts") },
  logs: { name: "Logs", key: "3", load: () => import("./logs") },
  system: { name: "System", key: "4", load: () => import("./system") },
  checkpoints: { name: "Checkpoints", key: "5", load: () => import("./checkpoints") },
  files: { name: "Files", key: "6", load: () => import("./files") },
};
const tabPath = (id: string, tab: string) => runPage(id, tab === "overview" ? "" : tab);

export default function RunPage({ params }: PageProps) {
  const id = params.id ?? "";
  const tab = params.tab ?? "overview";
  const known = TABS[tab];
  const { got, missing } = useLoaded(known?.load ?? null);
  const reading = useOverview(id);
  useEffect(() => {
    document.querySelector(".tabs [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
  }, [tab]);
  const name = reading.data?.run.name;
  useEffect(() => {
    if (name) document.title = `${name} · ${known?.name ?? "Run"} · Onward`;
  }, [name, known]);
  useKeys("Run", [
    ...Object.entries(TABS).map(([tab, { name, key }]) => ({
      ...{ keys: key, does: name, act: () => go(tabPath(id, tab)) },
    })),
    { keys: "u", does: "Back to the list of runs", act: () => go(href("/")) },
  ]);
  if (reading.fault?.status === 404)
    return (
      <Empty title={`No run with id ${id}`}>
        It may have been deleted, or it belongs to another server. <a href={href("/")}>Go to the runs</a>
      </Empty>
    );
  const tabs = Object.entries(TABS).map(([tab, { name }]) => ({ id: tab, name, to: tabPath(id, tab) }));
  const Page = got?.default;
  return (
    <RunContext.Provider value={reading}>
      <div class={`page run-page tab-${tab}`}>
        <Header id={id} reading={reading} brief={tab !== "overview"} />
        <Tabs tabs={tabs} current={tab} label="Parts of this run" />
        {!known && <Empty title="This page does not exist" />}
        {missing && <NotLoaded missing={missing} />}
        {Page && (
          <Boundary key={`${id}/${tab}`}>
            <Page id={id} />
          </Boundary>
        )}
      </div>
    </RunContext.Provider>
  );
}
