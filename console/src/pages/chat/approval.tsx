/** The calls that wait for a person, right where they were asked for: the cards of the page of approvals. One is there
 * until it is known what was answered, here or elsewhere, which may be after the call has ended. */
import { useEffect } from "preact/hooks";
import { hasScope } from "../../lib/api";
import { useEvent } from "../../lib/use-event";
import { Fault, Loading, Notice } from "../../ui/state";
import { AnswerAll } from "../approvals/actions";
import { Card } from "../approvals/card";
import { useApproval } from "../approvals/use-approval";
import type { Call } from "./model";
import { words } from "./words";

export function ApprovalPanels({ calls, onAnswer }: { calls: Call[]; onAnswer: (id: string, answer: string) => void }) {
  const waiting = calls.filter((call) => call.approval && !call.answered);
  const asking = waiting.filter((call) => call.state === "approval");
  const settleOne = (approval: string, effect?: "allow" | "deny") => {
    const call = asking.find((one) => one.approval === approval);
    if (call && effect) onAnswer(call.id, effect === "allow" ? "allowed" : "denied");
  };
  return (
    <>
      {waiting.map((call) => (
        <ApprovalPanel
          key={call.approval}
          call={call}
          number={asking.length > 1 ? calls.indexOf(call) + 1 : null}
          onAnswer={(answer) => onAnswer(call.id, answer)}
        />
      ))}
      {asking.length > 1 && hasScope("approve") && (
        <div class="chat-approval">
          <AnswerAll ids={asking.map((call) => call.approval!)} settle={settleOne} />
        </div>
      )}
    </>
  );
}

/** `number`: of several that wait together, to tell them apart. */
function ApprovalPanel({
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
