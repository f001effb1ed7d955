/** Pictures, sounds and films that a result carries as data: never an address, so nothing is fetched. */
import { toText } from "./text";

export type MediaKind = "image" | "audio" | "video";

const URI = /^data:((?:image\/(?:png|jpeg|gif|webp|avif|bmp))|(?:audio|video)\/[\w.+-]+);base64,[A-Za-z0-9+/]+={0,2}$/;

/** The MIME type of a data URI that a browser shows or plays; null for any other text. */
export function mimeOf(uri: string): string | null {
  return URI.exec(uri)?.[1] ?? null;
}

export function mediaKind(mime: string): MediaKind {
  return mime.startsWith("image/") ? "image" : mime.startsWith("audio/") ? "audio" : "video";
}

interface Part {
  image_url?: { url?: unknown };
  video_url?: { url?: unknown };
  input_audio?: { data?: unknown; format?: unknown };
}

/** Media among parts of content, in any form that a part may have: all kinds come as `image_url` from plugins. */
export function mediaOf(parts: readonly unknown[]): string[] {
  return parts.map((part) => uriOf((part ?? {}) as Part)).filter((uri) => mimeOf(uri) !== null);
}

function uriOf(part: Part): string {
  const audio = part.input_audio;
  if (audio) return `data:audio/${audio.format === "mp3" ? "mpeg" : String(audio.format)};base64,${String(audio.data)}`;
  return toText(part.image_url?.url ?? part.video_url?.url);
}
