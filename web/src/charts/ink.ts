/** The theme's colours for a canvas. */
import { computed } from "@preact/signals";
import { dark } from "../theme";

export type Ink = {
  text: string;
  muted: string;
  faint: string;
  line: string;
  strong: string;
  raised: string;
  accent: string;
};

export const ink = computed<Ink>(() => {
  void dark.value;
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: of("text"),
    muted: of("muted"),
    faint: of("faint"),
    line: of("line"),
    strong: of("line-strong"),
    raised: of("raised"),
    accent: of("accent"),
  };
});

export const FONT =
  '11px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", Arial, sans-serif';
