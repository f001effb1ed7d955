/** The fields of the form as they are typed, and the table of a provider that they mean. */
import { formatLines, MASK, parseLines, plainProtocol, toProviderUrl, type Provider, type Table } from "./provider";

export interface FormDraft {
  name: string;
  url: string;
  /** Empty: what the test finds. */
  protocol: string;
  key: string;
  /** “yes”: the stored key is removed. */
  removeKey: string;
  models: string;
  keys: string;
  headers: string;
  query: string;
  proxy: string;
  former_names: string;
  first_byte_seconds: string;
  idle_seconds: string;
  whole_seconds: string;
  tool_rounds: string;
  context_window: string;
}
export const NUMBERS = [
  "first_byte_seconds",
  "idle_seconds",
  "whole_seconds",
  "tool_rounds",
  "context_window",
] as const;
export type Problem = "url" | "badUrl" | "name" | "taken" | "former" | "headers" | "query";

const NAME = /^[\w][\w.-]{0,63}$/;

export function toDraft(provider: Provider | null): FormDraft {
  const table: Table = provider?.table ?? { url: "" };
  return {
    name: provider?.name ?? "",
    url: table.url,
    protocol: provider ? (table.protocol ?? "chat") : "",
    key: "",
    removeKey: "",
    models: (table.models ?? []).join("\n"),
    keys: "",
    headers: formatLines(table.headers),
    query: formatLines(table.query),
    proxy: table.proxy ?? "",
    former_names: (table.former_names ?? []).join("\n"),
    ...(Object.fromEntries(NUMBERS.map((name) => [name, String(table[name] ?? "")])) as Record<
      (typeof NUMBERS)[number],
      string
    >),
  };
}

/** The table, or what is wrong. Secrets that were not typed anew keep their mask. `found`: the protocol of a test. */
export function toTable(
  draft: FormDraft,
  stored: Provider | null,
  taken: readonly string[],
  found: string | null = null,
): Table | Problem {
  if (!draft.url.trim()) return "url";
  const url = toProviderUrl(draft.url);
  if (!url) return "badUrl";
  const isNamed = !stored || stored.name !== ""; // the provider that is set without a name has none to change
  if (isNamed && draft.name !== stored?.name && !NAME.test(draft.name)) return "name";
  if (isNamed && draft.name !== stored?.name && taken.includes(draft.name)) return "taken";
  const former_names = toWords(draft.former_names).filter((one) => one !== draft.name);
  if (former_names.some((one) => one.includes("/"))) return "former";
  const [headers, query] = [parseLines(draft.headers), parseLines(draft.query)];
  if (!headers) return "headers";
  if (!query) return "query";
  const keys = toWords(draft.keys);
  return {
    url,
    protocol: plainProtocol(draft.protocol || found),
    key: draft.key.trim() || (stored?.table.key && !draft.removeKey ? MASK : ""),
    models: toWords(draft.models),
    keys: keys.length ? keys : (stored?.table.keys ?? []),
    headers,
    query,
    proxy: draft.proxy.trim(),
    ...(isNamed && former_names.length ? { former_names } : {}),
    ...Object.fromEntries(NUMBERS.filter((name) => draft[name]).map((name) => [name, Number(draft[name])])),
    ...(stored?.table.disabled ? { disabled: true } : {}),
  };
}

function toWords(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}
