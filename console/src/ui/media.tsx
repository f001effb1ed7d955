/** A picture, or a player for a sound or a film, from its own bytes. */
import { mediaKind, mimeOf } from "../lib/media";

export function MediaView({ uri, label }: { uri: string; label: string }) {
  const kind = mediaKind(mimeOf(uri) ?? "");
  if (kind === "image") return <img src={uri} alt={label} />;
  return kind === "audio" ? (
    <audio controls preload="metadata" src={uri} aria-label={label} />
  ) : (
    <video controls preload="metadata" src={uri} aria-label={label} />
  );
}
