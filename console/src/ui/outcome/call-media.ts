/** The pictures, sounds, films and files that a call gave. */
import { request } from "../../lib/api";
import type { Envelope } from "toolyard-client";
import { readUri } from "../../lib/file-uri";
import { toText } from "../../lib/text";

/** An image, sound, film or file that came beside the envelope; `data` is base64. */
export interface Media {
  mime: string;
  data: string;
  name: string;
}

/** The media of a call that has ended, as far as the server still has them. */
export async function loadMedia(id: string, envelope: Envelope | null | undefined): Promise<Media[]> {
  const listed: unknown = [envelope?.data.content, envelope?.data.content_parts].find(Array.isArray);
  const parts = (listed ?? []) as ({ type?: unknown; path?: unknown; name?: unknown } | null)[];
  const loaded = parts.map(async (part, number): Promise<Media[]> => {
    if (!/^(image|audio|video)$/.test(toText(part?.type)) || !part?.path) return [];
    const response = await request(`/v1/calls/${encodeURIComponent(id)}/media/${number}`);
    return fromUri(await readUri(await response.blob()), toText(part.name));
  });
  const settled = await Promise.allSettled(loaded);
  return settled.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
}

/** The media in a data URI; other URLs have none that may be shown. */
export function fromUri(uri: string, name = ""): Media[] {
  const match = /^data:([\w.+-]+\/[\w.+-]+);base64,([A-Za-z0-9+/=]*)$/.exec(uri);
  return match ? [{ mime: match[1]!, data: match[2]!, name }] : [];
}
