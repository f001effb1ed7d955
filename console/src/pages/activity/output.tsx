/** The output of a call as the page of its tool shows it, and the raw envelope. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { CallDetail, Envelope } from "toolyard-client";
import { fromUri, loadMedia, type Media } from "../../ui/outcome/call-media";
import { messageIn } from "../../lib/messages";
import { canvasIn } from "../../lib/special-action";
import { CanvasButton } from "../../ui/canvas-button";
import { Json } from "../../ui/code";
import { MessageText } from "../../ui/message-text";
import { Outcome } from "../../ui/outcome";
import { shortenMedia, findMedia } from "./media";
import { activityWords as words } from "./words";

/** The words of a call that ended without an envelope, such as one whose host went down. */
function NoEnvelope({ call }: { call: CallDetail }) {
  const message = call.error ? messageIn(call.error, "message") : messageIn(call, "text");
  return message.text ? <MessageText message={message} /> : <>{words().noEnvelope}</>;
}

export function Output({ call }: { call: CallDetail }) {
  const t = words();
  if (!call.envelope) return <p class="quiet">{call.state === "running" ? t.running : <NoEnvelope call={call} />}</p>;
  return (
    <div class="stack">
      <StoredOutcome id={call.id} envelope={call.envelope} />
      {canvasIn(call) && (
        <div>
          <CanvasButton path={canvasIn(call)} />
        </div>
      )}
      <details class="fold">
        <summary>{t.envelope}</summary>
        <Json label={t.envelope} value={call.envelope} />
      </details>
    </div>
  );
}

/** The panel shows the error above its tabs, and what changed in a tab of its own. */
function StoredOutcome({ id, envelope }: { id: string; envelope: Envelope }) {
  const loaded = useSignal<Media[]>([]);
  useEffect(() => void loadMedia(id, envelope).then((media) => (loaded.value = media)), [id, envelope, loaded]);
  const inside = useMemo(() => findMedia(envelope.data).flatMap((uri) => fromUri(uri)), [envelope]);
  const short = useMemo(() => ({ ...envelope, data: shortenMedia(envelope.data) }) as Envelope, [envelope]);
  return <Outcome envelope={short} media={[...inside, ...loaded.value]} isErrorShown isPatchShown />;
}
