/** What modules ask of a browser while they are loaded: an English one that has stored nothing. */
import { vi } from "vitest";
import messages from "./src/lib/messages.zh.json";

const stored = new Map<string, string>();

vi.stubGlobal("addEventListener", () => undefined);
vi.stubGlobal("location", { origin: "http://yard.test", href: "http://yard.test/", pathname: "/", search: "" });
vi.stubGlobal("document", { querySelector: () => null });
vi.stubGlobal("navigator", { language: "en" });
vi.stubGlobal("localStorage", {
  getItem: (key: string) => stored.get(key) ?? null,
  setItem: (key: string, value: string) => void stored.set(key, value),
});

/** The Chinese messages are loaded from the server; here from their file. */
vi.stubGlobal("fetch", () => Promise.resolve(new Response(JSON.stringify(messages))));
