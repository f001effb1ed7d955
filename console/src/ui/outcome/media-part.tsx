/** A picture, a sound, a film or a file that a tool gave, from its own bytes: nothing is fetched. */
import "./outcome.css";
import { formatBytes } from "../../lib/clock";
import type { Media } from "./call-media";
import { Icon } from "../icon";
import { outcomeWords } from "./words";

/** Pictures that a browser draws without running anything in them. */
const PICTURE = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;

export function MediaPart({ media, name }: { media: Media; name: string }) {
  const uri = `data:${media.mime};base64,${media.data}`;
  const size = Math.floor((media.data.length * 3) / 4);
  const ending = name.includes(".") ? "" : `.${media.mime.split("/")[1]?.replace(/\+.*/, "") ?? "bin"}`;
  const file = name.replaceAll(/[^\w.-]+/g, "-") + ending;
  return (
    <figure class="outcome-media">
      {PICTURE.test(media.mime) && <img src={uri} alt={name} />}
      {media.mime.startsWith("audio/") && <audio controls src={uri} aria-label={name} />}
      {media.mime.startsWith("video/") && <video controls src={uri} aria-label={name} />}
      <figcaption class="row">
        <span class="faint grow cut" title={media.mime}>
          {media.mime} · {formatBytes(size)}
        </span>
        <a class="button quiet" href={uri} download={file}>
          <Icon sign="download" size={16} />
          <span>{outcomeWords().download}</span>
        </a>
      </figcaption>
    </figure>
  );
}
