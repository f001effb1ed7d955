/** The output of a call: text, media, data, and the raw envelope. Truncated output says how much is missing, and can be
 * loaded. */
import { formatBytes } from "../../lib/clock";
import { readableText } from "../../lib/envelope-text";
import { messageIn } from "../../lib/messages";
import { Code, Json } from "../../ui/code";
import { MessageText } from "../../ui/message-text";
import { Notice } from "../../ui/state";
import { shortenMedia, Media, findMedia } from "./media";
import type { CallDetail } from "./types";
import { FullOutput } from "./full-output";
import { activityWords as words } from "./words";

interface Cut {
  kept_bytes?: number;
  original_bytes?: number;
  full_output_path?: string | null;
}

/** The words of a call that ended without an envelope, such as one whose host went down. */
function NoEnvelope({ call }: { call: CallDetail }) {
  const message = call.error ? messageIn(call.error, "message") : messageIn(call, "text");
  return message.text ? <MessageText message={message} /> : <>{words().noEnvelope}</>;
}

export function Output({ call }: { call: CallDetail }) {
  const t = words();
  const { envelope } = call;
  if (!envelope) return <p class="quiet">{call.state === "running" ? t.running : <NoEnvelope call={call} />}</p>;
  const { data } = envelope;
  const cut = data.truncation as Cut | undefined;
  const fullOutputPath = (envelope.context.full_text_path as string | undefined) ?? cut?.full_output_path;
  const media = findMedia(data);
  const rest = Object.keys(data).filter((key) => key !== "preview" && key !== "structured_patch");
  return (
    <div class="stack">
      {cut && (
        <Notice tone="warn">
          <p>{t.cut(formatBytes(cut.kept_bytes ?? 0), formatBytes(cut.original_bytes ?? 0))}</p>
        </Notice>
      )}
      {typeof data.cut === "string" && <Notice tone="warn">{t.cutData}</Notice>}
      <Code label={t.text} text={readableText(envelope)} />
      {typeof data.preview === "string" && <Code label={t.preview} text={data.preview} />}
      {fullOutputPath && <FullOutput path={fullOutputPath} />}
      {media.length > 0 && <Media uris={media} />}
      {rest.length > 0 && <Json label={t.data} value={shortenMedia(data)} />}
      <details class="fold">
        <summary>{t.envelope}</summary>
        <Json label={t.envelope} value={envelope} />
      </details>
    </div>
  );
}
