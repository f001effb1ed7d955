/** Providers as the settings have them, and the changes of the settings that add, edit or remove one. The server masks
 * every secret; where a change still has the mask, it keeps what it stores. */
import type { SettingRow } from "toolyard-client";
import { isForChat } from "./model-kind";
import { presetName, PRESETS, type Preset } from "./presets";

export const MASK = "[masked]";
/** Where a key without an address belongs. */
const DEFAULT_URL = "https://api.openai.com/v1";

/** What providers speak, by its names; a provider without one is asked in chat. */
export const PROTOCOLS = {
  chat: "OpenAI Chat Completions",
  responses: "OpenAI Responses",
  anthropic: "Anthropic Messages",
} as const;

export interface Table {
  url: string;
  protocol?: string;
  key?: string | null;
  models?: readonly string[];
  keys?: string | readonly string[];
  headers?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string>>;
  proxy?: string;
  first_byte_seconds?: number;
  idle_seconds?: number;
  whole_seconds?: number;
  tool_rounds?: number;
  context_window?: number;
  disabled?: boolean;
  /** Names that it had: under them its models still answer. */
  former_names?: readonly string[];
}
/** The provider that is set without a name has the name "". */
export interface Provider {
  name: string;
  table: Table;
  /** The environment variable that sets it, which only a restart changes. */
  variable: string;
}
export type Values = Record<string, unknown>;
export type Fallbacks = Readonly<Record<string, readonly string[]>>;

/** What is read of a setting here. */
type StoredSetting = Pick<SettingRow, "name" | "value" | "source" | "variable">;

export function valueOf<T>(settings: readonly StoredSetting[], name: string): T | null {
  return (settings.find((one) => one.name === name)?.value ?? null) as T | null;
}

export function listProviders(settings: readonly StoredSetting[]): Provider[] {
  const named = Object.entries(valueOf<Record<string, Table>>(settings, "upstreams") ?? {}).map(
    ([name, table]): Provider => ({ name, table: clean(table), variable: "" }),
  );
  const url = valueOf<string>(settings, "upstream_url");
  const key = valueOf<string>(settings, "upstream_key");
  const options = valueOf<Partial<Table>>(settings, "upstream_options") ?? {};
  if (!url && !key && !options.keys) return named;
  const set = settings.find((one) => /^upstream_(url|key)$/.test(one.name) && one.source === "env");
  const protocol = plainProtocol(valueOf<string>(settings, "upstream_protocol") ?? "");
  const table = clean({ url: url ?? DEFAULT_URL, key, protocol, ...options });
  return [{ name: "", table, variable: set?.variable ?? "" }, ...named];
}

/** The changes that store a provider in place of the one of the same name. */
export function storeValues(providers: readonly Provider[], name: string, table: Table): Values {
  const { url, key, protocol, ...options } = clean(table);
  const upstream_options = Object.keys(options).length ? options : null;
  const unnamed = providers.find((one) => !one.name);
  // A variable may set it as well, and then cannot be changed here: what has not changed is not sent.
  const own = protocol === unnamed?.table.protocol ? {} : { upstream_protocol: protocol ?? null };
  if (!name && unnamed?.variable) return { upstream_options, ...own };
  if (!name) return { upstream_url: url, upstream_key: key ?? null, upstream_options, ...own };
  const named = providers.filter((one) => one.name).map((one): [string, Table] => [one.name, one.table]);
  return { upstreams: Object.fromEntries(new Map([...named, [name, { ...clean(table), url }]])) };
}

/** The changes that store a named provider under another name, and lead to it what led to it. Under the name that it had
 * its models still answer, for conversations, assistants and programs that use it. */
export function renameValues(
  providers: readonly Provider[],
  former: string,
  name: string,
  table: Table,
  defaultModel: string | null,
  fallbacks: Fallbacks,
): Values {
  const former_names = [former, ...(table.former_names ?? [])].filter(
    (one, at, all) => one !== name && all.indexOf(one) === at,
  );
  const named = providers
    .filter((one) => one.name)
    .map((one): [string, Table] =>
      one.name === former ? [name, clean({ ...table, former_names })] : [one.name, one.table],
    );
  const moved = (model: string) => (model.startsWith(`${former}/`) ? `${name}${model.slice(former.length)}` : model);
  const chains = Object.entries(fallbacks).map(([model, others]) => [moved(model), others.map(moved)] as const);
  return {
    upstreams: Object.fromEntries(named),
    ...(defaultModel && moved(defaultModel) !== defaultModel ? { default_model: moved(defaultModel) } : {}),
    ...(JSON.stringify(Object.fromEntries(chains)) !== JSON.stringify(fallbacks)
      ? { fallbacks: Object.fromEntries(chains) }
      : {}),
  };
}

/** The changes that remove a provider, and what would lead to it. */
export function removeValues(
  providers: readonly Provider[],
  name: string,
  defaultModel: string | null,
  fallbacks: Fallbacks,
): Values {
  if (!name) {
    const own = providers.some((one) => !one.name && one.table.protocol) ? { upstream_protocol: null } : {};
    return { upstream_url: null, upstream_key: null, upstream_options: null, ...own };
  }
  const rest = providers.filter((one) => one.name && one.name !== name);
  const taken = new Set(rest.map((one) => one.name));
  const former = providers.find((one) => one.name === name)?.table.former_names ?? [];
  const names = [name, ...former.filter((one) => !taken.has(one))];
  const leads = (model: string) => names.some((one) => model.startsWith(`${one}/`));
  const kept = Object.entries(fallbacks)
    .filter(([model]) => !leads(model))
    .map(([model, others]) => [model, others.filter((one) => !leads(one))] as const)
    .filter(([, others]) => others.length);
  return {
    upstreams: rest.length ? Object.fromEntries(rest.map((one) => [one.name, one.table])) : null,
    ...(defaultModel && leads(defaultModel) ? { default_model: null } : {}),
    ...(Object.keys(fallbacks).length ? { fallbacks: kept.length ? Object.fromEntries(kept) : null } : {}),
  };
}

/** A protocol as it is stored: chat needs no word. */
export function plainProtocol(protocol: string | null | undefined): string {
  return protocol && protocol !== "chat" ? protocol : "";
}

/** A table without what is not set. A masked list of further keys is kept as it is. */
function clean(table: Table): Table {
  const isSet = (value: unknown) =>
    value !== null &&
    value !== undefined &&
    value !== "" &&
    value !== false &&
    (typeof value !== "object" || Object.keys(value).length > 0);
  return Object.fromEntries(Object.entries(table).filter(([, value]) => isSet(value))) as unknown as Table;
}

/** The address of a provider as it was meant: without a scheme, a server at home (an IP address, a name without dots, a
 * port of its own) is asked over HTTP and every other over HTTPS. Empty: it is no address. */
export function toProviderUrl(typed: string): string {
  const text = typed
    .trim()
    .replaceAll("：", ":")
    .replace(/^(https?)(?::\/*|\/\/+)/i, (_, scheme: string) => `${scheme.toLowerCase()}://`);
  const place = text.replace(/^https?:\/\/|^\/+/, "");
  if (/[\s?#@]|:\/\//.test(place)) return "";
  try {
    const { hostname, port } = new URL(`http://${place}`);
    if (/^https?:/.test(text)) return text;
    const isAtHome = /^[^.]+$|^[\d.]+$|\.(local|lan|home|internal)$/i.test(hostname) || !["", "443"].includes(port);
    return `${isAtHome ? "http" : "https"}://${place}`;
  } catch {
    return "";
  }
}

export function presetOf(url: string): Preset | undefined {
  const place = trimmed(url);
  return PRESETS.find((one) => [one.url, one.abroad].some((known) => known && trimmed(known) === place));
}

function trimmed(url: string): string {
  return (toProviderUrl(url) || url.trim()).replace(/\/+$/, "").replace(/\/v1$/, "");
}

/** The name for people: that of the preset, else of the settings, else the host. */
export function titleOf({ name, table }: Pick<Provider, "name" | "table">): string {
  const preset = presetOf(table.url);
  if (preset && (!name || name === preset.id)) return presetName(preset);
  return name || hostOf(table.url);
}

export function hostOf(url: string): string {
  try {
    return new URL(toProviderUrl(url) || url).host;
  } catch {
    return url;
  }
}

/** A name that no other provider has, from the preset or the host. */
export function freeName(providers: readonly Provider[], url: string): string {
  const host = hostOf(url).replace(/:\d+$/, "").split(".");
  const known = presetOf(url)?.id ?? (host.length > 1 && !/^\d+$/.test(host.at(-1)!) ? host.at(-2)! : "local");
  const base = known.replace(/[^\w.-]/g, "") || "provider";
  const taken = new Set(providers.map((one) => one.name));
  if (!taken.has(base)) return base;
  for (let number = 2; ; number++) if (!taken.has(`${base}-${number}`)) return `${base}-${number}`;
}

/** The name of a provider's model that leads to this provider, whatever others list. */
export function modelId(provider: string, model: string): string {
  return provider ? `${provider}/${model}` : model;
}

const NOT_FOR_CHAT = new RegExp(
  "embed|tts|whisper|dall-e|image|moderation|rerank|audio|realtime|transcri|davinci|babbage|" +
    "search|ocr|asr|video|speech|bge-|wan\\d|flux|veo|imagen|aqa",
  "i",
);

/** The model to begin with: one that the preset prefers, else the first that looks like one for chats, if any does. */
export function pickModel(models: readonly string[], preset?: Preset): string {
  for (const wanted of preset?.prefer ?? []) {
    const exact = models.find((one) => one === wanted);
    const close = models.find((one) => one.startsWith(wanted) && !NOT_FOR_CHAT.test(one));
    if (exact ?? close) return (exact ?? close)!;
  }
  return models.find((one) => !NOT_FOR_CHAT.test(one)) ?? models.find((id) => isForChat({ id })) ?? "";
}

/** Lines such as “Name: value”, as a table; null if a line is none. */
export function parseLines(text: string): Record<string, string> | null {
  const table: Record<string, string> = {};
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const at = line.indexOf(":");
    if (at < 1) return null;
    table[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return table;
}

export function formatLines(table: Readonly<Record<string, string>> = {}): string {
  return Object.entries(table)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}
