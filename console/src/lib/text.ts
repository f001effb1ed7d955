/** Text for a value of any kind: text as it is, nothing for nothing, all else as JSON. */
export function toText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "" : (JSON.stringify(value) ?? "");
}
