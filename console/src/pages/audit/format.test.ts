import { describe, expect, it } from "vitest";
import type { AuditRow } from "toolyard-client";
import { formatDetail, linkOf, subjectOf } from "./format";

const entry: AuditRow = {
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
  it("are about the tool, the plugin, the key or the server, and not about an id", () => {
    expect(subjectOf({ ...entry, tool: "Write" })).toBe("Write");
    expect(subjectOf(entry)).toBe("Weather");
    expect(subjectOf({ ...entry, plugin: "" })).toBe("");
    expect(subjectOf({ ...entry, action: "key.created", plugin: "", detail: { name: "phone" } })).toBe("phone");
    expect(subjectOf({ ...entry, action: "mcp_server.removed", plugin: "", target: "git" })).toBe("git");
  });

  it("lead to the call or the schedule", () => {
    expect(linkOf({ ...entry, action: "call.run", target: "call_1" })).toBe("/activity?call=call_1");
    expect(linkOf({ ...entry, action: "approval.denied", detail: { call_id: "call_2" } })).toBe(
      "/activity?call=call_2",
    );
    expect(linkOf({ ...entry, action: "schedule.paused", target: "s" })).toBe("/schedule?schedule=s");
    expect(linkOf(entry)).toBe("");
  });

  it("show facts as texts and leave out what says nothing", () => {
    const detail = { access: "wide", folder: "", scopes: ["chat", "tools"], nothing: null, none: [], also: {} };
    expect(formatDetail(detail)).toEqual([
      { name: "Access", value: "project and network" },
      { name: "Permissions", value: "chat, tools" },
    ]);
    expect(formatDetail({ with_link: true, newer_fact: "x" })).toEqual([
      { name: "With a login link", value: "" },
      { name: "newer fact", value: "x" },
    ]);
  });

  it("show other values as JSON, and not without end", () => {
    expect(formatDetail({ rule: { tool: "Write" } })).toEqual([{ name: "rule", value: '{"tool":"Write"}' }]);
    expect(formatDetail({ long: "x".repeat(500) })[0]!.value).toHaveLength(200);
  });
});
