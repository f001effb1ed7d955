import { describe, expect, it } from "vitest";
import { formatDetail, subjectOf } from "./format";
import type { AuditEntry } from "./types";

const entry: AuditEntry = {
  id: "audit_1",
  at: 0,
  action: "plugin.allowed",
  by: "key:owner",
  way: "session",
  address: "127.0.0.1",
  tool: "",
  plugin: "Weather",
  target: "id",
  detail: {},
};

describe("entries of the audit trail", () => {
  it("are about the tool, else the plugin, else the target", () => {
    expect(subjectOf({ ...entry, tool: "Write" })).toBe("Write");
    expect(subjectOf(entry)).toBe("Weather");
    expect(subjectOf({ ...entry, plugin: "" })).toBe("id");
  });

  it("show facts as texts and leave out what says nothing", () => {
    const detail = { access: "wide", folder: "", scopes: ["chat", "tools"], nothing: null, none: [], also: {} };
    expect(formatDetail(detail)).toEqual([
      ["access", "wide"],
      ["scopes", "chat, tools"],
    ]);
  });

  it("show other values as JSON, and not without end", () => {
    expect(formatDetail({ rule: { tool: "Write" } })).toEqual([["rule", '{"tool":"Write"}']]);
    expect(formatDetail({ long: "x".repeat(500) })[0]![1]).toHaveLength(200);
  });
});
