/** The outcome of an approval, by whom and when, in one line. */
import { revealHidden } from "../../lib/hidden-characters";
import { callerName } from "../../lib/caller";
import { messageIn } from "../../lib/messages";
import { StateChip } from "../../ui/chip";
import { MessageText } from "../../ui/message-text";
import { Ago } from "../../ui/time";
import { nameOf, type Approval } from "./types";
import { approvalWords as words } from "./words";

export function answeredBy(one: Approval): string {
  const t = words();
  if (one.because === "auto-safe") return t.noApproval;
  if (one.answered_by) return t.answeredBy(revealHidden(callerName(one.answered_by)));
  return one.state === "expired" ? t.nobody : one.state === "interrupted" ? t.gone : "";
}

export function Outcome({ one }: { one: Approval }) {
  return (
    <article class="apr-ended" aria-labelledby={`${one.id}-name`}>
      <StateChip state={one.state} />
      <span id={`${one.id}-name`} class="mono cut" data-given title={nameOf(one)}>
        {revealHidden(nameOf(one))}
      </span>
      <span class="quiet">{answeredBy(one)}</span>
      <span class="faint">
        <Ago at={one.answered ?? one.updated} />
      </span>
      {one.note && (
        <q class="quiet">
          <MessageText message={messageIn(one, "note")} />
        </q>
      )}
    </article>
  );
}
