/** Parts of an entry as text. */
import type { AuditEntry } from "./types";

const MAX_LENGTH = 200;

/** The tool, plugin or other thing that an entry is about. */
export function subjectOf(entry: AuditEntry): string {
  return entry.tool || entry.plugin || entry.target;
}

/** The facts of a detail that say something, as texts. */
export function formatDetail(detail: Record<string, unknown>): [string, string][] {
  return Object.entries(detail)
    .filter(([, value]) => value !== null && value !== "" && value !== false && !isEmpty(value))
    .map(([name, value]) => [name, formatValue(value).slice(0, MAX_LENGTH)]);
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function formatValue(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(", ");
  return JSON.stringify(value);
}
