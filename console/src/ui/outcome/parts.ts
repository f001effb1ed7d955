/** The parts of a result, each once: what its text says already, what its media and patches show, is not shown again
 * as data. */
import type { Envelope } from "toolyard-client";
import type { Json, Values } from "../schema-form";

export interface OutcomeParts {
  /** Content to read as it is: a file, a page. */
  content: string;
  /** Lists and objects that the text does not have. */
  data: Values;
  /** Numbers, switches and short texts around it. */
  facts: Values;
}

/** Split the data of an envelope; `shown` are keys that something else shows, `hasMedia` says that its media are. */
export function splitOutcome(envelope: Envelope, shown: ReadonlySet<string>, hasMedia: boolean): OutcomeParts {
  const parts: OutcomeParts = { content: "", data: {}, facts: {} };
  for (const [key, value] of Object.entries((envelope.data ?? {}) as Values)) {
    if (shown.has(key) || isEmpty(value) || (key === "truncated" && !value) || isSaid(value, envelope.text, hasMedia))
      continue;
    if (key === "content" && typeof value === "string") parts.content = value;
    else if (typeof value === "object" || (typeof value === "string" && value.includes("\n"))) parts.data[key] = value;
    else parts.facts[key] = value;
  }
  return parts;
}

function isEmpty(value: Json): boolean {
  return value === null || value === "" || (typeof value === "object" && Object.values(value).every(isEmpty));
}

/** True if the text already says a value: the same words, or parts of content of which each is said or was media. */
function isSaid(value: Json, text: string, hasMedia: boolean): boolean {
  if (typeof value === "string") return value.trim() !== "" && text.includes(value.trim());
  return (
    Array.isArray(value) &&
    value.every((part) => isPart(part) && (part.type === "text" ? isSaid(part.text!, text, hasMedia) : hasMedia))
  );
}

function isPart(value: Json): value is { type: string; text?: string } {
  if (typeof value !== "object" || value === null || Array.isArray(value) || typeof value.type !== "string")
    return false;
  return value.type === "text" ? typeof value.text === "string" : ["image", "audio", "video"].includes(value.type);
}

/** A result as one text: for a chat, and to be copied. */
export function mainText(envelope: Envelope): string {
  const { content, data } = splitOutcome(envelope, new Set(["structured_patch"]), true);
  const rest = Object.entries(data).map(([name, value]) => `${name}:\n${formatData(value)}`);
  return [envelope.text, content, ...rest].filter(Boolean).join("\n\n");
}

/** Data that takes as little room as it can be read in: a line for each item of a list. */
function formatData(value: Json): string {
  if (typeof value === "string") return value;
  return Array.isArray(value) ? value.map((one) => JSON.stringify(one)).join("\n") : JSON.stringify(value, null, 2);
}
