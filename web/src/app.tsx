/** The shell around every page: bar, live marker, `?` sheet, toasts; and what is shown while there is no page to show. */
import { useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { inWords, loginNeeded } from "./api";
import { sheetOpen, useKeys } from "./keys";
import { Bar } from "./parts/bar";
import { Empty } from "./parts/empty";
import { Boundary } from "./parts/fault";
import { KeySheet } from "./parts/keysheet";
import { Toasts } from "./parts/toast";
import { find, type Page, type Route, routes } from "./routes";
import { go, here, href } from "./url";

const loaded = new Map<Route, Page>();

export function App() {
  useKeys("Everywhere", [
    { keys: "?", does: "Show these keys", act: () => (sheetOpen.value = !sheetOpen.value) },
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
  const [, redraw] = useState(0);
  const [fault, setFault] = useState<unknown>(null);
  const route = found?.route;
  useEffect(() => {
    setFault(null);
    if (!route || loaded.has(route)) return;
    let left = false;
    route
      .load()
      .then((module) => {
        loaded.set(route, module.default);
        if (!left) redraw((count) => count + 1);
      })
      .catch((error: unknown) => !left && setFault(error));
    return () => {
      left = true;
    };
  }, [route]);
  useSignalEffect(() => {
    document.title = `${find(here.value.path)?.route.name ?? "Not found"} · Onward`;
  });
  if (!found)
    return (
      <Empty title="There is no page at this address">
        <a href={href("/")}>To the runs</a>
      </Empty>
    );
  if (fault)
    return (
      <Empty title="This page could not be loaded">
        {inWords(fault)?.what}. The server may have been upgraded.{" "}
        <button type="button" onClick={() => location.reload()}>
          Load it anew
        </button>
      </Empty>
    );
  const Shown = loaded.get(found.route);
  return Shown ? (
    <Boundary key={found.route.path}>
      <Shown params={found.params} />
    </Boundary>
  ) : null;
}

function LoginNeeded() {
  return (
    <Empty title="You are no longer logged in">
      Get a link where the server runs: <code>onward token login</code>. Or{" "}
      <a href={window.location.href} data-native onClick={() => location.reload()}>
        log in with a token
      </a>
      ; you come back to this view.
    </Empty>
  );
}
