/** Parts of an entry as people read them. */
import type { AuditRow } from "toolyard-client";
import { callerName } from "../../lib/caller";
import { joinWords } from "../../lib/language";
import { messageIn, messageText } from "../../lib/messages";
import { factWords, factValue } from "./facts";

const MAX_LENGTH = 200;
const HIDDEN = new Set(["call_id", "name", "reason_code", "reason_params"]); // shown elsewhere, or not for people

/** The tool, plugin or other thing that an entry is about; ids say nothing to people and are left out. */
export function subjectOf(entry: AuditRow): string {
  if (entry.action.startsWith("key."))
    return typeof entry.detail.name === "string" ? entry.detail.name : callerName(`key:${entry.target}`);
  if (entry.tool || entry.plugin) return entry.tool || entry.plugin;
  return entry.action.startsWith("mcp_server.") ? entry.target : "";
}

/** The place where there is more about an entry; empty if there is none. */
export function linkOf(entry: AuditRow): string {
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
    .filter(([key, value]) => !HIDDEN.has(key) && saysSomething(value))
    .map(([key, value]) => ({
      name: factWords()[key] ?? key.replaceAll("_", " "),
      value: value === true ? "" : formatValue(key, value, detail).slice(0, MAX_LENGTH),
    }));
}

function saysSomething(value: unknown): boolean {
  const isEmpty = typeof value === "object" && value !== null && Object.keys(value).length === 0;
  return value !== null && value !== "" && value !== false && !isEmpty;
}

function formatValue(key: string, value: unknown, detail: object): string {
  if (key === "reason" && "reason_code" in detail) return messageText(messageIn(detail, key));
  if (typeof value === "string") return factValue(key, value);
  if (Array.isArray(value) && value.every((one) => typeof one === "string"))
    return joinWords(value.map((one) => factValue(key, one)));
  return JSON.stringify(value);
}
