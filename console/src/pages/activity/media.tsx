/** Pictures, sounds and films that a result carries as data URIs. Nothing is fetched. */
import { bytes } from "../../lib/clock";
import { mimeOf } from "../../lib/media";
import { MediaView } from "../../ui/media";
import { activityWords as words } from "./words";

const MOST = 20;
const SHORT = 200;

export function mediaIn(value: unknown, found: string[] = []): string[] {
  if (found.length >= MOST) return found;
  if (typeof value === "string") {
    if (mimeOf(value)) found.push(value);
  } else if (typeof value === "object" && value !== null) for (const one of Object.values(value)) mediaIn(one, found);
  return found;
}

/** The same value to be read: of a data URI only what it is and how long. */
export function brief(value: unknown): unknown {
  if (typeof value === "string")
    return value.length > SHORT && value.startsWith("data:")
      ? `${value.slice(0, value.indexOf(",") + 1)}… (${bytes(value.length)})`
      : value;
  if (Array.isArray(value)) return value.map(brief);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, brief(one)]));
  return value;
}

export function Media({ found }: { found: readonly string[] }) {
  const t = words();
  return (
    <section class="act-media" aria-label={t.media}>
      {found.map((uri, at) => (
        <MediaView key={at} uri={uri} label={`${t.media} ${at + 1}, ${mimeOf(uri)}`} />
      ))}
    </section>
  );
}
