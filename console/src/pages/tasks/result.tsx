/** The result of a task as people read it: its words, its pictures and sounds, and all of it as data. */
import { useMemo } from "preact/hooks";
import { fromUri } from "../../ui/outcome/call-media";
import { revealHidden } from "../../lib/hidden-characters";
import { Json } from "../../ui/code";
import { MediaPart } from "../../ui/outcome/media-part";
import { findMedia, shortenMedia } from "../activity/media";
import { taskWords as words } from "./words";

export function TaskResult({ result }: { result: unknown }) {
  const t = words();
  const media = useMemo(() => findMedia(result).flatMap((uri) => fromUri(uri)), [result]);
  if (result === null || result === undefined) return null;
  const { message } = result as { message?: unknown };
  return (
    <>
      {typeof message === "string" && (
        <p class="tsk-words" data-given>
          {revealHidden(message)}
        </p>
      )}
      {media.map((one, n) => (
        <MediaPart key={n} media={one} name={t.mediaOf(n + 1)} />
      ))}
      <Json label={t.result} value={shortenMedia(result)} />
    </>
  );
}
