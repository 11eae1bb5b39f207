/** The shell around every page: bar, live marker, `?` sheet, toasts; and what is shown while there is no page to show. */
import { useSignalEffect } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { loginNeeded } from "./api";
import { sheetOpen, useKeys } from "./keys";
import { opened } from "./live";
import { NotLoaded, useLoaded } from "./loaded";
import { Bar } from "./parts/bar";
import { Empty } from "./parts/empty";
import { Boundary } from "./parts/fault";
import { KeySheet } from "./parts/keysheet";
import { Toasts } from "./parts/toast";
import { find, routes } from "./routes";
import { go, here, href } from "./url";

export function App() {
  useKeys("Everywhere", [
    { keys: "?", does: "Show keyboard shortcuts", act: () => (sheetOpen.value = !sheetOpen.value) },
    ...routes.flatMap(({ key, name, path }) =>
      key ? [{ keys: `g ${key}`, does: `Go to ${name}`, act: () => go(href(path)) }] : [],
    ),
  ]);
  return (
    <>
      <a class="skip" href="#main" data-native>
        Skip to the page
      </a>
      <Bar />
      <main id="main" tabIndex={-1}>
        {loginNeeded.value ? <LoginNeeded /> : <CurrentPage />}
      </main>
      <Toasts />
      {sheetOpen.value && <KeySheet close={() => (sheetOpen.value = false)} />}
    </>
  );
}

function CurrentPage() {
  const { path } = here.value;
  const found = useMemo(() => find(path), [path]);
  const { got, missing } = useLoaded(found?.route.load ?? null);
  useSignalEffect(() => {
    document.title = `${find(here.value.path)?.route.name ?? "Not found"} · Onward`;
  });
  if (!found)
    return (
      <Empty title="There is no page at this address">
        <a href={href("/")}>Go to the runs</a>
      </Empty>
    );
  if (missing) return <NotLoaded missing={missing} />;
  const Shown = got?.default;
  return Shown && opened.value ? (
    <Boundary key={found.route.path}>
      <Shown params={found.params} />
    </Boundary>
  ) : null;
}

function LoginNeeded() {
  return (
    <Empty title="You are no longer logged in">
      Run <code>onward token login</code> on the server's machine to get a login link, or{" "}
      <a href={window.location.href} data-native onClick={() => location.reload()}>
        log in with a token
      </a>
      ; you will come back to this view.
    </Empty>
  );
}
