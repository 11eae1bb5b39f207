/** The bar at the top: where one is, where one can go, and whether what is shown is live. */
import { sheetOpen } from "../keys";
import { routes } from "../routes";
import { setTheme, theme } from "../theme";
import { here, href } from "../url";
import { Icon } from "./icon";
import { useCurrentInView } from "./inview";
import { LiveMarker } from "./stale";

const NEXT = { system: "light", light: "dark", dark: "system" } as const;

export function Bar() {
  const { path } = here.value;
  const inNav = routes.filter((route) => route.key && route.path !== "/new" && route.path !== "/tokens");
  const current = (to: string) =>
    to === "/" ? path === "/" || path.startsWith("/runs") : path === to || path.startsWith(`${to}/`);
  const row = useCurrentInView(path);
  return (
    <header class="bar">
      <a class="brand" href={href("/")} aria-label="Onward: runs">
        <Icon name="onward" />
        <span>Onward</span>
      </a>
      <nav ref={row} aria-label="Pages">
        {inNav.map(({ name, path: to }) => (
          <a key={to} href={href(to)} aria-current={current(to) ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <div class="bar-end">
        <LiveMarker />
        <a class="button primary" href={href("/new")}>
          <Icon name="plus" />
          <span>New run</span>
        </a>
        <a class="button quiet icon" href={href("/tokens")} aria-label="Tokens" title="Tokens">
          <Icon name="key" />
        </a>
        <button
          type="button"
          class="quiet icon"
          aria-label={`Theme: ${theme.value}`}
          title={`Theme: ${theme.value}`}
          onClick={() => setTheme(NEXT[theme.value])}
        >
          <Icon name={theme.value === "system" ? "half" : theme.value === "dark" ? "moon" : "sun"} />
        </button>
        <button
          type="button"
          class="quiet icon"
          aria-label="Keyboard shortcuts"
          title="Keyboard shortcuts (?)"
          onClick={() => (sheetOpen.value = true)}
        >
          <Icon name="help" />
        </button>
      </div>
    </header>
  );
}
