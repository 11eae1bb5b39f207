/** One run: its header, and a tab for each way to look at it. A tab's code is loaded when it is first opened. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Empty } from "../../parts/empty";
import { Boundary } from "../../parts/fault";
import { Tabs } from "../../parts/tabs";
import type { PageProps } from "../../routes";
import { href } from "../../url";

type TabPage = ComponentType<{ id: string }>;
const TABS: Record<string, { name: string; load: () => Promise<{ default: TabPage }> }> = {
  overview: { name: "Overview", load: () => import("./overview") },
  charts: { name: "Charts", load: () => import("./charts") },
  logs: { name: "Logs", load: () => import("./logs") },
  system: { name: "System", load: () => import("./system") },
  checkpoints: { name: "Checkpoints", load: () => import("./checkpoints") },
  files: { name: "Files", load: () => import("./files") },
};

export default function RunPage({ params }: PageProps) {
  const id = params.id ?? "";
  const tab = params.tab ?? "overview";
  const known = TABS[tab];
  const [shown, setShown] = useState<{ tab: string; page: TabPage } | null>(null);
  useEffect(() => {
    let left = false;
    known?.load().then((module) => !left && setShown({ tab, page: module.default }));
    return () => {
      left = true;
    };
  }, [tab, known]);
  const tabs = Object.entries(TABS).map(([key, { name }]) => ({
    id: key,
    name,
    to: href(`/runs/${encodeURIComponent(id)}${key === "overview" ? "" : `/${key}`}`),
  }));
  const Page = shown?.tab === tab ? shown.page : null;
  return (
    <div class="page">
      <Tabs tabs={tabs} current={tab} label="Parts of this run" />
      {!known && <Empty title="There is no such tab" />}
      {Page && (
        <Boundary key={`${id}/${tab}`}>
          <Page id={id} />
        </Boundary>
      )}
    </div>
  );
}
