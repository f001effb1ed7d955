/** What modules ask of a browser while they are loaded: an English one that has stored nothing. */
import { vi } from "vitest";
import catalogue from "../src/toolyard/messages.json";

const stored = new Map<string, string>();

vi.stubGlobal("addEventListener", () => undefined);
vi.stubGlobal("location", { origin: "http://yard.test", href: "http://yard.test/", pathname: "/", search: "" });
vi.stubGlobal("document", { querySelector: () => null });
vi.stubGlobal("navigator", { language: "en" });
vi.stubGlobal("localStorage", {
  getItem: (key: string) => stored.get(key) ?? null,
  setItem: (key: string, value: string) => void stored.set(key, value),
});

/** The Chinese messages by their codes are loaded from the server; here from its catalogue. */
const rows = Object.entries<{ code?: string; zh?: string }>(catalogue);
const messages = Object.fromEntries(rows.map(([template, { code = template, zh }]) => [code, zh]));
vi.stubGlobal("fetch", () => Promise.resolve(new Response(JSON.stringify(messages))));
