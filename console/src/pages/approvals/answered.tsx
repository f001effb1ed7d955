/** An approval that was answered, or that nobody answered: the outcome, by whom, and all that was asked. */
import { hasScope } from "../../lib/api";
import { callerName } from "../../lib/caller";
import { chatLink } from "../../lib/chat-link";
import type { Envelope } from "toolyard-client";
import { useResource } from "../../lib/resource";
import { revealHidden } from "../../lib/hidden-characters";
import { useMemo } from "preact/hooks";
import { filesOf } from "../../ui/patch";
import { messageIn } from "../../lib/messages";
import { StateChip } from "../../ui/chip";
import { MessageText } from "../../ui/message-text";
import { Ago } from "../../ui/time";
import { Body } from "./card";
import { answeredBy } from "./outcome";
import { approvalWords as words, whyOf } from "./words";
import type { Approval } from "./types";

export function Answered({ one }: { one: Approval }) {
  const t = words();
  const chat = chatLink(one.chat);
  // The preview is gone with the question; what the call changed is in its result.
  const hasRun = one.state === "allowed" && hasScope("tools");
  const call = useResource<{ envelope: Envelope | null }>(
    hasRun ? `/v1/calls/${encodeURIComponent(one.call_id)}` : null,
    ["call.finished"],
    (data) => data.id === one.call_id,
  );
  const changed = useMemo(() => (call.value ? filesOf(call.value.envelope) : undefined), [call.value]);
  return (
    <>
      <div class="row" role="status">
        <StateChip state={one.state} />
        <span>{answeredBy(one)}</span>
        <span class="faint">
          <Ago at={one.answered ?? one.updated} />
        </span>
      </div>
      {one.note && (
        <blockquote class="apr-note" dir="auto">
          <MessageText message={messageIn(one, "note")} />
        </blockquote>
      )}
      <p>{whyOf(t, one.because, one.reason)}</p>
      <p class="faint">
        {t.requestedBy(revealHidden(callerName(one.caller)))} ·{" "}
        <a href={`/activity?call=${encodeURIComponent(one.call_id)}`}>{t.openCall}</a>
        {chat && (
          <>
            {" "}
            · <a href={chat}>{t.openChat}</a>
          </>
        )}
      </p>
      <Body one={one} changed={changed} />
    </>
  );
}
