/** An approval that was answered, or that nobody answered: the outcome, by whom, and all that was asked. */
import { callerName } from "../../lib/caller";
import { revealHidden } from "../../lib/hidden-characters";
import { messageIn } from "../../lib/messages";
import { StateChip } from "../../ui/chip";
import { MessageText } from "../../ui/message-text";
import { Ago } from "../../ui/time";
import { Body } from "./card";
import { answeredBy } from "./outcome";
import type { Approval } from "./types";
import { approvalWords as words, whyOf } from "./words";

export function Answered({ one }: { one: Approval }) {
  const t = words();
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
      </p>
      <Body one={one} />
    </>
  );
}
