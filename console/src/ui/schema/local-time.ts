/** Dates and times between a JSON Schema (RFC 3339, with an offset) and a field of the browser (local, without one). */
export type TimeKind = "date" | "time" | "date-time";

/** The text for the field; null if it is no date or time, and empty for empty text. */
export function toLocalTime(kind: TimeKind, text: string): string | null {
  if (!text) return "";
  if (kind === "date") return /^\d{4}-\d{2}-\d{2}$/.test(text) ? text : null;
  if (kind === "time") return /^\d{2}:\d{2}(:\d{2})?$/.test(text) ? text : null;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) || !/^\d{4}-\d{2}-\d{2}[Tt ]/.test(text) ? null : formatLocal(at);
}

/** The text that is sent. */
export function fromLocalTime(kind: TimeKind, text: string): string {
  if (!text || kind === "date") return text;
  if (kind === "time") return text.length === 5 ? `${text}:00` : text;
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  const minutes = -at.getTimezoneOffset();
  const offset = `${minutes < 0 ? "-" : "+"}${pad(Math.abs(minutes) / 60)}:${pad(Math.abs(minutes) % 60)}`;
  return formatLocal(at) + offset;
}

function formatLocal(at: Date): string {
  const day = `${String(at.getFullYear()).padStart(4, "0")}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
  return `${day}T${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
}

function pad(part: number): string {
  return String(Math.floor(part)).padStart(2, "0");
}
