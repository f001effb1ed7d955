/** The catalogue's entries: tools and plugins put together, with what they did in the last day. */
import { messageIn, type ServerMessage } from "../../lib/messages";
import { signal } from "@preact/signals";
import type { CallStatistics, PluginRow, ToolCount, ToolSummary } from "toolyard-client";
import { aboutOf, titleOf } from "./translation";

export interface Entry {
  name: string;
  title: string;
  version: string;
  about: string;
  kind: string;
  state: string;
  reason: ServerMessage;
  risk: ToolSummary["risk"] | "";
  tool: ToolSummary | null;
  plugin: PluginRow | null;
  stats: (ToolCount & { is_capped?: boolean }) | null;
  group: "plugins" | "built-in" | "mcp" | "remote";
}
export interface CatalogueFilter {
  search: string;
  kind: string;
  state: string;
  risk: string;
}

/** States in which a person has something to do. */
export const ATTENTION: ReadonlySet<string> = new Set([
  "broken",
  "error",
  "needs_review",
  "changed",
  "missing_config",
  "shadowed",
]);

export function entriesOf(
  tools: readonly ToolSummary[],
  plugins: readonly PluginRow[],
  stats: CallStatistics | null,
): Entry[] {
  const is_capped = stats?.is_capped ?? false;
  const counted = new Map((stats?.by_tool ?? []).map((one) => [one.tool, { ...one, is_capped }]));
  const byName = new Map(plugins.filter((one) => one.tools.length > 0).map((one) => [one.name, one]));
  const entries = tools.map((tool): Entry => {
    const plugin = (tool.plugin && byName.get(tool.plugin)) || null;
    return {
      name: tool.name,
      title: titleOf(tool),
      version: tool.version,
      about: firstSentence(aboutOf(tool)),
      kind: tool.kind,
      state: plugin?.state ?? "ready",
      reason: plugin ? messageIn(plugin, "reason") : { text: "" },
      risk: tool.risk,
      tool,
      plugin,
      stats: counted.get(tool.name) ?? null,
      group: tool.plugin ? "plugins" : tool.kind === "mcp" ? "mcp" : tool.kind === "remote" ? "remote" : "built-in",
    };
  });
  const withTools = new Set(entries.map((one) => one.plugin));
  for (const plugin of plugins) {
    if (withTools.has(plugin)) continue;
    entries.push({
      name: plugin.name,
      title: titleOf(plugin),
      version: plugin.version,
      about: firstSentence(aboutOf({ ...plugin, description: "" })),
      kind: plugin.kind,
      state: plugin.state,
      reason: messageIn(plugin, "reason"),
      risk: "",
      tool: null,
      plugin,
      stats: counted.get(plugin.name) ?? null,
      group: "plugins",
    });
  }
  return entries;
}

export function firstSentence(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return /^.{8,}?[。！？]|^.{8,}?[.!?](?=\s)/u.exec(line)?.[0] ?? line;
}

export function matchesFilter(entry: Entry, filter: CatalogueFilter): boolean {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  const { name, title, about, tool } = entry;
  const text = [name, title, tool?.display_name, about, ...(tool?.commands ?? [])].join(" ").toLowerCase();
  const state =
    filter.state === "attention" ? ATTENTION.has(entry.state) : !filter.state || entry.state === filter.state;
  return (
    state &&
    (!filter.kind || entry.kind === filter.kind) &&
    (!filter.risk || entry.risk === filter.risk) &&
    words.every((word) => text.includes(word))
  );
}

/** The address of an entry; a folder tells apart plugins that want the same name. */
export function toolPath(
  entry: { name: string; plugin: PluginRow | null; tool: ToolSummary | null },
  tab = "",
): string {
  const query = new URLSearchParams();
  if (tab) query.set("tab", tab);
  if (!entry.tool && entry.plugin) query.set("folder", entry.plugin.folder);
  const text = query.toString();
  return `/tools/${encodeURIComponent(entry.name)}${text ? `?${text}` : ""}`;
}

const STORED = "toolyard.favourites";

function loadFavourites(): ReadonlySet<string> {
  try {
    return new Set(JSON.parse(localStorage.getItem(STORED) ?? "[]") as string[]);
  } catch {
    return new Set();
  }
}

export const favourites = signal<ReadonlySet<string>>(loadFavourites());

export function toggleFavourite(name: string): void {
  const next = new Set(favourites.value);
  if (!next.delete(name)) next.add(name);
  favourites.value = next;
  localStorage.setItem(STORED, JSON.stringify([...next]));
}
