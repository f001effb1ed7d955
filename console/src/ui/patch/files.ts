/** The changed files that the result of a call tells of, wherever in its data they stand. */
import type { PatchHunk } from "toolyard-client";
import type { PatchFile } from "./model";

const DEEPEST = 6;

export function filesOf(envelope: unknown): PatchFile[] {
  if (!isObject(envelope)) return [];
  const context = isObject(envelope.context) ? envelope.context : {};
  const collected: PatchFile[] = [];
  collect(envelope.data, text(context.path_resolved), 0, collected);
  return collected;
}

/** Rows of `{path, operation, structured_patch}`, as an approval has them. */
export function filesFrom(rows: unknown): PatchFile[] {
  const collected: PatchFile[] = [];
  collect(rows, "", 0, collected);
  return collected;
}

function collect(value: unknown, near: string, depth: number, into: PatchFile[]): void {
  if (depth > DEEPEST || typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) return value.forEach((one) => collect(one, near, depth + 1, into));
  const one = value as Record<string, unknown>;
  const path = text(one.path) || text(one.file_path) || text(one.path_resolved) || near;
  if (Array.isArray(one.structured_patch)) {
    into.push({
      path,
      from: text(one.from) || undefined,
      operation: text(one.operation) || undefined,
      binary: one.binary === true,
      hunks: one.structured_patch.filter(isHunk),
    });
    return;
  }
  for (const key of Object.keys(one)) collect(one[key], path, depth + 1, into);
}

function isHunk(value: unknown): value is PatchHunk {
  return (
    isObject(value) &&
    Array.isArray(value.lines) &&
    typeof value.oldStart === "number" &&
    typeof value.newStart === "number"
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
