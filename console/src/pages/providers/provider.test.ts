import { describe, expect, it } from "vitest";
import type { SettingRow } from "toolyard-client";
import { PRESETS } from "./presets";
import {
  freeName,
  listProviders,
  parseLines,
  pickModel,
  presetOf,
  removeValues,
  renameValues,
  storeValues,
  titleOf,
  toProviderUrl,
} from "./provider";

const setting = (
  name: string,
  value: SettingRow["value"],
  source: SettingRow["source"] = "file",
  variable = "",
): Pick<SettingRow, "name" | "value" | "source" | "variable"> => ({ name, value, source, variable });
const SETTINGS = [
  setting("upstream_url", "https://api.openai.com/v1", "env", "OPENAI_BASE_URL"),
  setting("upstream_key", "[masked]"),
  setting("upstream_options", { idle_seconds: 90 }),
  setting("upstreams", {
    local: { url: "http://127.0.0.1:11434", key: null, models: ["qwen3:8b"] },
    far: { url: "https://far.example.org/v1", key: "[masked]", models: [], headers: { "X-Title": "[masked]" } },
  }),
];

describe("providers of the settings", () => {
  const providers = listProviders(SETTINGS);

  it("lists the one without a name first, and leaves out what is not set", () => {
    expect(providers).toEqual([
      {
        name: "",
        variable: "OPENAI_BASE_URL",
        table: { url: "https://api.openai.com/v1", key: "[masked]", idle_seconds: 90 },
      },
      { name: "local", variable: "", table: { url: "http://127.0.0.1:11434", models: ["qwen3:8b"] } },
      {
        name: "far",
        variable: "",
        table: { url: "https://far.example.org/v1", key: "[masked]", headers: { "X-Title": "[masked]" } },
      },
    ]);
    expect(listProviders([])).toEqual([]);
    expect(listProviders([setting("upstream_key", "[masked]")])[0]!.table.url).toBe("https://api.openai.com/v1");
  });

  it("stores one beside the others, in its place", () => {
    const stored = storeValues(providers, "local", { url: "http://10.0.0.2", disabled: true, key: "" });
    expect(Object.entries(stored.upstreams as object)).toEqual([
      ["local", { url: "http://10.0.0.2", disabled: true }],
      ["far", providers[2]!.table],
    ]);
    expect(storeValues(providers, "", { url: "https://x.org", key: "sk-1", disabled: true })).toEqual({
      upstream_options: { disabled: true },
    });
    expect(storeValues(providers.slice(1), "", { url: "https://x.org", key: "sk-1" })).toEqual({
      upstream_url: "https://x.org",
      upstream_key: "sk-1",
      upstream_options: null,
    });
  });

  it("stores the protocol, of the one without a name as a setting of its own", () => {
    const table = { url: "https://x.org", protocol: "anthropic" };
    expect(storeValues([], "far", table)).toEqual({ upstreams: { far: table } });
    const values = storeValues([], "", table);
    expect(values).toEqual({
      upstream_url: "https://x.org",
      upstream_key: null,
      upstream_options: null,
      upstream_protocol: "anthropic",
    });
    const stored = listProviders([setting("upstream_url", "https://x.org"), setting("upstream_protocol", "anthropic")]);
    expect(stored[0]!.table).toEqual(table);
    expect(storeValues(stored, "", { url: "https://x.org" })).toMatchObject({ upstream_protocol: null });
    expect(removeValues(stored, "", null, {})).toMatchObject({ upstream_protocol: null });
    expect(
      listProviders([setting("upstream_url", "https://x.org"), setting("upstream_protocol", "chat")])[0]!.table,
    ).toEqual({ url: "https://x.org" });
  });

  it("renames one in its place, and leads to it what led to it", () => {
    const fallbacks = { "gpt-5": ["far/gpt-5", "local/qwen3:8b"], "far/x": ["gpt-5"], farther: ["z"] };
    const table = { ...providers[2]!.table, former_names: ["first", "near"] };
    const renamed = renameValues(providers, "far", "near", table, "far/gpt-5", fallbacks);
    expect(Object.entries(renamed.upstreams as object)).toEqual([
      ["local", providers[1]!.table],
      ["near", { ...providers[2]!.table, former_names: ["far", "first"] }],
    ]);
    expect(renamed.default_model).toBe("near/gpt-5");
    expect(renamed.fallbacks).toEqual({
      "gpt-5": ["near/gpt-5", "local/qwen3:8b"],
      "near/x": ["gpt-5"],
      farther: ["z"],
    });
    expect(Object.keys(renameValues(providers, "local", "here", providers[1]!.table, "far/x", {}))).toEqual([
      "upstreams",
    ]);
  });

  it("removes one with the default model and the fallbacks that lead to it", () => {
    const fallbacks = { "gpt-5": ["far/gpt-5", "local/qwen3:8b"], "far/x": ["gpt-5"], y: ["far/z"] };
    expect(removeValues(providers, "far", "far/gpt-5", fallbacks)).toEqual({
      upstreams: { local: providers[1]!.table },
      default_model: null,
      fallbacks: { "gpt-5": ["local/qwen3:8b"] },
    });
    expect(removeValues(providers.slice(0, 2), "local", "gpt-5", {})).toEqual({ upstreams: null });
  });

  it("names them for people and for the settings", () => {
    expect(providers.map(titleOf)).toEqual(["OpenAI", "local", "far"]);
    expect(freeName(providers, "https://api.deepseek.com")).toBe("deepseek");
    expect(freeName(providers, "https://api.far.org/v1")).toBe("far-2");
    expect(freeName(providers, "http://10.0.0.7:8080/v1")).toBe("local-2");
    expect(freeName(providers, "10.0.0.7:8080/v1")).toBe("local-2");
  });
});

describe("addresses", () => {
  it.each([
    ["127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"],
    [" localhost:8000 ", "http://localhost:8000"],
    ["192.168.1.20/v1", "http://192.168.1.20/v1"],
    ["[::1]:8080/v1", "http://[::1]:8080/v1"],
    ["gpu-box/v1", "http://gpu-box/v1"],
    ["nas.local/v1", "http://nas.local/v1"],
    ["models.example.org:8000/v1", "http://models.example.org:8000/v1"],
    ["api.deepseek.com", "https://api.deepseek.com"],
    ["api.example.org:443/v1", "https://api.example.org:443/v1"],
    ["httpbin.org/v1", "https://httpbin.org/v1"],
    ["//api.example.org/v1", "https://api.example.org/v1"],
    ["https//api.example.org/v1", "https://api.example.org/v1"],
    ["HTTP:/api.example.org/v1", "http://api.example.org/v1"],
    ["https：//api.example.org/v1", "https://api.example.org/v1"],
    ["http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"],
  ])("%s means %s", (typed, url) => expect(toProviderUrl(typed)).toBe(url));

  it.each([
    "",
    "https://",
    "ftp://example.org",
    "my server",
    "http://a b",
    "user@host/v1",
    "http://x:port",
    "host?key=1",
  ])("%s is none", (typed) => expect(toProviderUrl(typed)).toBe(""));
});

describe("presets", () => {
  it("have one id and one address each, and are found by it", () => {
    expect(new Set(PRESETS.map((one) => one.id)).size).toBe(PRESETS.length);
    for (const one of PRESETS) {
      expect(presetOf(`${one.url}/`)).toBe(one);
      if (one.abroad) expect(presetOf(one.abroad)).toBe(one);
      expect(one.url.startsWith("https://") || one.keys === undefined).toBe(true);
    }
    expect(presetOf("https://api.openai.com")?.id).toBe("openai");
    expect(presetOf("api.openai.com/v1")?.id).toBe("openai");
    expect(presetOf("https://example.org/v1")).toBeUndefined();
  });

  it("prefer a model for chats that the provider really has", () => {
    const openai = PRESETS.find((one) => one.id === "openai");
    expect(pickModel(["text-embedding-3-small", "gpt-4o-mini-tts", "gpt-4o-mini", "gpt-5"], openai)).toBe("gpt-5");
    expect(pickModel(["text-embedding-3-small", "qwen3:8b"])).toBe("qwen3:8b");
    expect(pickModel(["text-embedding-3-small"])).toBe("");
    expect(pickModel([])).toBe("");
    const claude = PRESETS.find((one) => one.id === "anthropic");
    expect(pickModel(["claude-opus-4-1", "claude-sonnet-4-5-20250929"], claude)).toBe("claude-sonnet-4-5-20250929");
  });
});

describe("lines of headers", () => {
  it("are names and values", () => {
    expect(parseLines("X-Title: a: b\n\n api-key : {key}")).toEqual({ "X-Title": "a: b", "api-key": "{key}" });
    expect(parseLines("no colon")).toBeNull();
  });
});
