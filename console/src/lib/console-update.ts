/** Whether the server has a newer console than this page: it may have been upgraded while the connection was lost. */
import { effect, signal } from "@preact/signals";
import { request } from "./api";
import { reconnections } from "./events";

export const isOutdated = signal(false);

export function watchForUpdates(): void {
  const script = document.querySelector<HTMLScriptElement>('script[type="module"]')?.src.split("/console/").pop();
  if (!script || import.meta.env.DEV) return;
  effect(() => {
    if (reconnections.value > 0) void compare(script);
  });
}

async function compare(script: string): Promise<void> {
  try {
    const page = await request("/console/index.html", { headers: { Accept: "text/html" } });
    if (!(await page.text()).includes(script)) isOutdated.value = true;
  } catch {
    // The connection is lost again: the next one compares.
  }
}
