/** Light and dark: as the system says, unless this browser was told otherwise. */
import { computed, effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEPT = "onward-theme";

function kept(): Theme {
  try {
    const value = localStorage.getItem(KEPT);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // a browser may forbid it
  }
}

export const theme = signal<Theme>(kept());
const system = window.matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(system.matches);
system.addEventListener("change", () => {
  systemDark.value = system.matches;
});

export const dark = computed(() => (theme.value === "system" ? systemDark.value : theme.value === "dark"));

effect(() => {
  document.documentElement.dataset.theme = dark.value ? "dark" : "light";
});

export function setTheme(to: Theme): void {
  theme.value = to;
  try {
    if (to === "system") localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, to);
  } catch {
    // it holds until the page is closed
  }
}
