/** What was opened from the finder last, newest first, in this browser. */
import { session } from "../lib/api";
import type { Sign } from "../ui/icon";
import type { Entry } from "./entry";

const MOST = 6;
/** Somebody else who signs in here sees theirs. */
const storedKey = () => `toolyard.recent.${session.value?.key ?? ""}`;

type Stored = Pick<Entry, "title" | "sign" | "given" | "href">;

export function listRecent(): Entry[] {
  return readStored().map((one) => ({ ...one, id: `recent ${one.href}`, kind: "recent", names: [] }));
}

export function rememberRecent(entry: Entry): void {
  if (!entry.href || entry.kind === "action" || entry.kind === "search") return;
  const { title, sign, given, href } = entry;
  const others = readStored().filter((one) => one.href !== href);
  localStorage.setItem(storedKey(), JSON.stringify([{ title, sign, given, href }, ...others].slice(0, MOST)));
}

function readStored(): (Stored & { href: string; sign: Sign })[] {
  try {
    const all: unknown = JSON.parse(localStorage.getItem(storedKey()) ?? "[]");
    return Array.isArray(all)
      ? (all as (Stored & { href: string })[]).filter((one) => typeof one?.href === "string")
      : [];
  } catch {
    return []; // Somebody else wrote there.
  }
}
