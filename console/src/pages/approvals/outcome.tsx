/** How an approval ended, by whom and when, in one line. */
import { visible } from "../../lib/visible";
import { who } from "../../lib/who";
import { StateChip } from "../../ui/chip";
import { Ago } from "../../ui/time";
import { nameOf, type Approval } from "./types";
import { approvalWords as words } from "./words";

export function whoAnswered(one: Approval): string {
  const t = words();
  if (one.because === "auto-safe") return t.byItself;
  if (one.answered_by) return t.answeredBy(visible(who(one.answered_by)));
  return one.state === "expired" ? t.nobody : one.state === "interrupted" ? t.gone : "";
}

export function Outcome({ one }: { one: Approval }) {
  return (
    <article class="apr-ended" aria-labelledby={`${one.id}-name`}>
      <StateChip state={one.state} />
      <span id={`${one.id}-name`} class="mono cut" data-given title={nameOf(one)}>
        {visible(nameOf(one))}
      </span>
      <span class="quiet">{whoAnswered(one)}</span>
      <span class="faint">
        <Ago at={one.answered ?? one.updated} />
      </span>
      {one.note && (
        <q class="quiet" data-given>
          {visible(one.note)}
        </q>
      )}
    </article>
  );
}
