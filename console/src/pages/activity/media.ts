/** Pictures, sounds and films that a result carries as data URIs. */
import { formatBytes } from "../../lib/clock";
import { mimeOf } from "../../lib/media";

const MOST = 20;
const SHORT = 200;

export function findMedia(value: unknown, uris: string[] = []): string[] {
  if (uris.length >= MOST) return uris;
  if (typeof value === "string") {
    if (mimeOf(value)) uris.push(value);
  } else if (typeof value === "object" && value !== null) for (const one of Object.values(value)) findMedia(one, uris);
  return uris;
}

/** The same value to be read: of a data URI only what it is and how long. */
export function shortenMedia(value: unknown): unknown {
  if (typeof value === "string")
    return value.length > SHORT && value.startsWith("data:")
      ? `${value.slice(0, value.indexOf(",") + 1)}… (${formatBytes(value.length)})`
      : value;
  if (Array.isArray(value)) return value.map(shortenMedia);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, shortenMedia(one)]));
  return value;
}
