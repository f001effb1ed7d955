import { describe, expect, test } from "vitest";
import type { PluginRow, ToolRow } from "toolyard-client";
import {
  toolPath,
  entriesOf,
  toggleFavourite,
  favourites,
  firstSentence,
  matchesFilter,
  type CatalogueFilter,
} from "./catalogue-data";

const toolOf = (name: string, more: Partial<ToolRow> = {}): ToolRow => ({
  name,
  display_name: name,
  translations: {},
  description: `${name} does something. And more.`,
  version: "1.0.0",
  risk: "read",
  kind: "built-in",
  plugin: null,
  server: null,
  parameters: {},
  native: { name, description: "", parameters: {} },
  commands: [],
  forms: [],
  synonyms: {},
  examples: [],
  hidden_characters: false,
  timeout_s: 60,
  aliases: [],
  output_schema: null,
  confinement: null,
  ...more,
});
const pluginOf = (name: string, more: Partial<PluginRow> = {}): PluginRow => ({
  name,
  display_name: name,
  translations: {},
  version: "2.0.0",
  kind: "sync",
  state: "ready",
  reason: "",
  folder: name,
  origin: "project",
  hidden_by: null,
  confinement: null,
  hides: [],
  tools: [name],
  commands: [],
  problems: [],
  ...more,
});
const ANY: CatalogueFilter = { search: "", kind: "", state: "", risk: "" };

describe("entriesOf", () => {
  test("a tool of a plugin has the plugin's state", () => {
    const plugin = pluginOf("Echo", { state: "missing_config", reason: "KEY" });
    const [entry, ...others] = entriesOf([toolOf("Echo", { plugin: "Echo", kind: "sync" })], [plugin], null);
    expect(entry).toMatchObject({
      name: "Echo",
      state: "missing_config",
      reason: { text: "KEY" },
      group: "plugins",
      plugin,
    });
    expect(others).toEqual([]);
  });

  test("a plugin without a tool has an entry of its own", () => {
    expect(entriesOf([], [pluginOf("Broken", { state: "broken", tools: [] })], null)).toMatchObject([
      { name: "Broken", state: "broken", tool: null, group: "plugins" },
    ]);
  });

  test("tools are grouped by where they come from, with what they did", () => {
    const counted = { tool: "LS", calls: 3, errors: 0, cancelled: 0, p50_ms: 1, max_ms: 2 };
    const about = { since: 0, counted_since: 0, by_state: {}, errors: [], slow: [] };
    const stats = { total: 3, is_capped: false, by_tool: [counted], ...about };
    const entries = entriesOf(
      [toolOf("LS"), toolOf("far", { kind: "remote" }), toolOf("m", { kind: "mcp" })],
      [],
      stats,
    );
    expect(entries.map((entry) => [entry.group, entry.stats?.calls ?? null])).toEqual([
      ["built-in", 3],
      ["remote", null],
      ["mcp", null],
    ]);
  });
});

test.each([
  ["Lists a folder. With more.", "Lists a folder."],
  ["列出一个文件夹的内容。还有更多。", "列出一个文件夹的内容。"],
  ["Reads e.g. a file. Then more", "Reads e.g."],
  ["No stop\nsecond line", "No stop"],
  ["Version 1.5 of it. Next.", "Version 1.5 of it."],
  ["", ""],
])("the first sentence of %j is %j", (text, sentence) => expect(firstSentence(text)).toBe(sentence));

describe("isWanted", () => {
  const [entry] = entriesOf([toolOf("FileOperator", { commands: ["ReadFile"], risk: "write" })], [], null);

  test.each<[Partial<CatalogueFilter>, boolean]>([
    [{}, true],
    [{ search: "operator READ" }, true],
    [{ search: "operator absent" }, false],
    [{ risk: "write" }, true],
    [{ risk: "read" }, false],
    [{ kind: "mcp" }, false],
    [{ state: "ready" }, true],
    [{ state: "attention" }, false],
  ])("%j: %s", (wanted, expected) => expect(matchesFilter(entry!, { ...ANY, ...wanted })).toBe(expected));

  test("what a person has to see to needs attention", () => {
    const [broken] = entriesOf([], [pluginOf("Broken", { state: "broken", tools: [] })], null);
    expect(matchesFilter(broken!, { ...ANY, state: "attention" })).toBe(true);
  });
});

test("the address of a plugin without a tool tells its folder", () => {
  expect(toolPath({ name: "a b", tool: toolOf("a b"), plugin: null })).toBe("/tools/a%20b");
  expect(toolPath({ name: "x", tool: null, plugin: pluginOf("x", { folder: "mine/x" }) }, "logs")).toBe(
    "/tools/x?tab=logs&folder=mine%2Fx",
  );
});

test("a favourite is one until it is chosen again, also after a reload", () => {
  toggleFavourite("LS");
  expect([...favourites.value]).toEqual(["LS"]);
  expect(localStorage.getItem("toolyard.favourites")).toBe('["LS"]');
  toggleFavourite("LS");
  expect(favourites.value.size).toBe(0);
});
