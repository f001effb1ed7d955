/** Light, dark, or as the system has it. */
import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark" | "system";
const STORED = "toolyard.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(system.matches);
system.addEventListener("change", (event) => (systemIsDark.value = event.matches));

const stored = localStorage.getItem(STORED);
export const theme = signal<Theme>(stored === "light" || stored === "dark" ? stored : "system");

export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  if (chosen === "system") {
    localStorage.removeItem(STORED);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(STORED, chosen);
    document.documentElement.dataset.theme = chosen;
  }
}

export function isDark(): boolean {
  return theme.value === "dark" || (theme.value === "system" && systemIsDark.value);
}

// The bars of a browser or a phone have the colour of the theme: its own choice, else that of the system.
effect(() => {
  for (const meta of document.querySelectorAll<HTMLMetaElement>('meta[name="theme-color"]')) {
    const own = meta.dataset.for as Theme;
    meta.media = theme.value === "system" ? `(prefers-color-scheme: ${own})` : own === theme.value ? "all" : "not all";
  }
});
