/** A call that waits for a person, right where it was asked for: the card of the page of approvals. It is there until it
 * is known what was answered, here or elsewhere, which may be after the call has ended. */
import { useEffect } from "preact/hooks";
import { hasScope } from "../../lib/api";
import { useEvent } from "../../lib/use-event";
import { Fault, Loading, Notice } from "../../ui/state";
import { Card } from "../approvals/card";
import { useApproval } from "../approvals/use-approval";
import type { Call } from "./model";
import { words } from "./words";

/** `number`: of several that wait together, to tell them apart. */
export function ApprovalPanel({
  call,
  number,
  onAnswer,
}: {
  call: Call;
  number: number | null;
  onAnswer: (answer: string) => void;
}) {
  const t = words();
  const detail = useApproval(hasScope("approve") ? call.approval : null);
  const { value, error, reload } = detail;
  const state = value?.state;
  const report = useEvent(onAnswer);
  useEffect(() => {
    if (state && state !== "pending") report(state);
  }, [report, state]);
  // The reply goes on at once, and may have ended before the answer is loaded.
  const settle = (_: string, effect?: "allow" | "deny") =>
    effect ? onAnswer(effect === "allow" ? "allowed" : "denied") : reload();
  if (call.state !== "approval") return null;
  return (
    <section class="chat-approval" aria-label={number ? `${t.asks(call.tool)} (${number})` : t.asks(call.tool)}>
      {!hasScope("approve") ? (
        <Notice tone="warn">{t.cannotAnswer(call.tool)}</Notice>
      ) : value ? (
        <Card row={value} detail={detail} inChat sticky settle={settle} />
      ) : error ? (
        <Fault error={error} retry={reload} />
      ) : (
        <Loading rows={3} />
      )}
    </section>
  );
}
