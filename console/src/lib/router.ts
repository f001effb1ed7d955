/** The address is the state: the page, what is open and every filter, so that reload, back and forward keep them. */
import { computed, signal } from "@preact/signals";
import { toAddress, toPath } from "./base";
import { decodePart } from "./uri";

const here = () => (toPath(location.pathname) ?? "/") + location.search;
const address = signal(here());
addEventListener("popstate", () => (address.value = here()));

export const route = computed(() => {
  const [path = "/", search = ""] = address.value.split("?");
  const steps = path.split("/").filter(Boolean).map(decodePart);
  return { page: steps[0] ?? "chat", name: steps.slice(1).join("/"), query: new URLSearchParams(search) };
});

export function navigate(to: string, replace = false): void {
  if (to === address.value) return;
  if (replace) history.replaceState(null, "", toAddress(to));
  else history.pushState(null, "", toAddress(to));
  address.value = here();
}

export function queryParam(key: string): string {
  return route.value.query.get(key) ?? "";
}

/** Change a few keys of the query, keep the rest; empty removes. */
export function setQuery(changes: Record<string, string | null | undefined>, replace = true): void {
  const query = new URLSearchParams(route.value.query);
  for (const [key, value] of Object.entries(changes)) {
    if (value) query.set(key, value);
    else query.delete(key);
  }
  const text = query.toString();
  navigate((toPath(location.pathname) ?? "/") + (text ? `?${text}` : ""), replace);
}

/** For links: plain clicks stay in the page; the browser keeps its own ways for all others. */
export function handleLinkClick(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest?.("a[href^='/']") as HTMLAnchorElement | null;
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const path = toPath(link.pathname);
  if (path === null || /^\/(docs|metrics|login|openapi)/.test(path)) return;
  if (link.target || link.hasAttribute("download")) return;
  event.preventDefault();
  navigate(path + link.search);
}
