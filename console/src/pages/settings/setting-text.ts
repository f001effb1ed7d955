/** Settings as they are typed. A draft is the text itself, so that a line that is being written is not tidied away. */
import { toText } from "../../lib/text";

export type Kind = "text" | "number" | "bool" | "list" | "choice" | "table";

export function toDraft(kind: Kind, value: unknown): string {
  if (kind === "list") return Array.isArray(value) ? value.join("\n") : toText(value);
  if (kind === "table")
    return Object.entries((value ?? {}) as Record<string, readonly string[] | boolean>)
      .map(([name, words]) => `${name}: ${[words].flat().join(", ")}`)
      .join("\n");
  return value === null || value === undefined ? "" : toText(value);
}

/** The value of a draft for the server, which judges it; null removes the setting. */
export function toValue(kind: Kind, draft: string): unknown {
  const lines = draft
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  switch (kind) {
    case "bool":
      return draft === "true";
    case "number":
      return draft.trim() === "" ? null : Number(draft);
    case "list":
      return lines.length ? lines : null;
    case "table":
      return lines.length ? Object.fromEntries(lines.map(parseEntry)) : null;
    default:
      return draft.trim() === "" ? null : draft.trim();
  }
}

function parseEntry(line: string): [string, string[]] {
  const at = line.indexOf(":");
  const words = at < 0 ? "" : line.slice(at + 1);
  return [
    (at < 0 ? line : line.slice(0, at)).trim(),
    words
      .split(",")
      .map((word) => word.trim())
      .filter(Boolean),
  ];
}
