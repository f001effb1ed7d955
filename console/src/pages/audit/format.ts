/** Parts of an entry as people read them. */
import { callerName } from "../../lib/caller";
import { factWords, factValue } from "./facts";
import type { AuditEntry } from "./types";

const MAX_LENGTH = 200;

/** The tool, plugin or other thing that an entry is about; ids say nothing to people and are left out. */
export function subjectOf(entry: AuditEntry): string {
  if (entry.action.startsWith("key."))
    return typeof entry.detail.name === "string" ? entry.detail.name : callerName(`key:${entry.target}`);
  if (entry.tool || entry.plugin) return entry.tool || entry.plugin;
  return entry.action.startsWith("mcp_server.") ? entry.target : "";
}

/** The place where there is more about an entry; empty if there is none. */
export function linkOf(entry: AuditEntry): string {
  if (entry.action === "call.run") return `/activity?call=${encodeURIComponent(entry.target)}`;
  if (entry.action.startsWith("schedule.")) return `/schedule?schedule=${encodeURIComponent(entry.target)}`;
  const call = entry.detail.call_id;
  return typeof call === "string" && call ? `/activity?call=${encodeURIComponent(call)}` : "";
}

export interface Fact {
  name: string;
  value: string;
}

/** The facts of a detail that say something to people, in the words of the page. */
export function formatDetail(detail: Record<string, unknown>): Fact[] {
  return Object.entries(detail)
    .filter(([key, value]) => key !== "call_id" && key !== "name" && saysSomething(value))
    .map(([key, value]) => ({
      name: factWords()[key] ?? key.replaceAll("_", " "),
      value: value === true ? "" : formatValue(key, value).slice(0, MAX_LENGTH),
    }));
}

function saysSomething(value: unknown): boolean {
  const isEmpty = typeof value === "object" && value !== null && Object.keys(value).length === 0;
  return value !== null && value !== "" && value !== false && !isEmpty;
}

function formatValue(key: string, value: unknown): string {
  if (typeof value === "string") return factValue(key, value);
  if (Array.isArray(value) && value.every((one) => typeof one === "string"))
    return value.map((one) => factValue(key, one)).join(", ");
  return JSON.stringify(value);
}
