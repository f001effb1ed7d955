/** A call that waits for a person, right where it was asked for: everything it would do, Deny and Allow. Allow cannot
 * be pressed in the first half second: nobody allows what just came under their finger. It is there until it is known
 * what was answered elsewhere, which may be after the call has ended. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, ApiError, hasScope } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { useEvent } from "../../lib/use-event";
import { Button } from "../../ui/button";
import { Json } from "../../ui/code";
import { Icon } from "../../ui/icon";
import { Fault } from "../../ui/state";
import { Countdown } from "../../ui/time";
import { approvalWords, whyOf } from "../approvals/words";
import type { Call } from "./model";
import { words } from "./words";

interface Approval {
  id: string;
  tool: string;
  state: string;
  because?: string | null;
  reason?: string;
  expires?: number | null;
  arguments: Record<string, unknown>;
  command_line?: string[] | string | null;
}

export function ApprovalPanel({ call, onAnswer }: { call: Call; onAnswer: (answer: string) => void }) {
  const t = words();
  const path = hasScope("approve") && call.approval ? `/v1/approvals/${encodeURIComponent(call.approval)}` : null;
  const { value, error, reload } = useResource<Approval>(path, ["approval."], (data) => data["id"] === call.approval);
  const settled = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => (settled.value = true), 500);
    return () => clearTimeout(timer);
  }, [settled]);
  const state = value?.state;
  const report = useEvent(onAnswer);
  useEffect(() => {
    if (state && state !== "pending") report(state);
  }, [report, state]);
  const answer = (how: "allow" | "deny") => async () => {
    try {
      await api(`/v1/approvals/${encodeURIComponent(call.approval!)}/${how}`, { body: {} });
    } catch (fault) {
      if (!(fault instanceof ApiError) || fault.status !== 409) throw fault;
      return reload(); // somebody else was faster
    }
    onAnswer(how === "allow" ? "allowed" : "denied");
  };
  if (call.state !== "approval") return null;
  return (
    <section class="chat-approval" aria-label={t.asks(call.tool)}>
      <div class="row">
        <Icon sign="approvals" size={17} />
        <strong>{t.asks(call.tool)}</strong>
        {value?.expires && (
          <span class="faint">
            {t.expiresIn} <Countdown to={value.expires} />
          </span>
        )}
      </div>
      {value && <p class="quiet">{whyOf(approvalWords(), value.because, value.reason)}</p>}
      {error && !value ? (
        <Fault error={error} retry={reload} />
      ) : (
        <Json label={t.input} value={value?.arguments ?? call.summary} />
      )}
      <div class="row">
        {path && (
          <Button kind="danger" onClick={answer("deny")}>
            {t.deny}
          </Button>
        )}
        {path && (
          <Button kind="primary" disabled={!settled.value || !value} onClick={answer("allow")}>
            {t.allow}
          </Button>
        )}
        <a class="button quiet" href={`/approvals?open=${encodeURIComponent(call.approval ?? "")}`}>
          {t.toApprovals}
        </a>
      </div>
    </section>
  );
}
