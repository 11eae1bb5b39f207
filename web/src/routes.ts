/** The pages and their addresses. A page's code is loaded when it is first opened. */
import type { ComponentType } from "preact";

export type PageProps = { params: Readonly<Record<string, string>> };
export type Page = ComponentType<PageProps>;
type Loaded = Promise<{ default: Page }>;

export type Route = {
  name: string;
  /** Parts with a colon are handed to the page; one with a question mark may be missing. */
  path: string;
  load: () => Loaded;
  /** In the bar at the top, and reached by `g` and this key. */
  key?: string;
};

export const routes: readonly Route[] = [
  { name: "Runs", path: "/", key: "r", load: () => import("./pages/runs") },
  { name: "Run", path: "/runs/:id/:tab?", load: () => import("./pages/run") },
  { name: "Compare", path: "/compare", key: "c", load: () => import("./pages/compare") },
  { name: "Experiments", path: "/experiments", key: "e", load: () => import("./pages/experiments") },
  { name: "Pipelines", path: "/pipelines", key: "p", load: () => import("./pages/pipelines") },
  { name: "Pipeline", path: "/pipelines/:name", load: () => import("./pages/pipelines") },
  { name: "Requests", path: "/requests", key: "q", load: () => import("./pages/requests") },
  { name: "Request", path: "/requests/:id", load: () => import("./pages/requests") },
  { name: "Cluster", path: "/cluster", key: "l", load: () => import("./pages/cluster") },
  { name: "Alerts", path: "/alerts", key: "a", load: () => import("./pages/alerts") },
  { name: "Tokens", path: "/tokens", key: "t", load: () => import("./pages/tokens") },
  { name: "New run", path: "/new", key: "n", load: () => import("./pages/new") },
];

/** The params of a path that a route takes, or null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/").filter(Boolean);
  const given = path.split("/").filter(Boolean);
  if (given.length > wanted.length) return null;
  const params: Record<string, string> = {};
  for (const [at, part] of wanted.entries()) {
    const value = given[at];
    if (part.startsWith(":")) {
      if (value !== undefined) params[part.replace(/[:?]/g, "")] = decoded(value);
      else if (!part.endsWith("?")) return null;
    } else if (part !== value) return null;
  }
  return params;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function find(path: string): { route: Route; params: Record<string, string> } | null {
  for (const route of routes) {
    const params = match(route.path, path);
    if (params) return { route, params };
  }
  return null;
}
