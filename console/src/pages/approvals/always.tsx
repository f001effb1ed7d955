/** Before a rule is kept: exactly which, and how many past calls it would have let through. */
import { useSignal } from "@preact/signals";
import type { RuleTarget } from "toolyard-client";
import { withQuery } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Fault } from "../../ui/state";
import { RuleText } from "./rule-text";
import { useToolNames } from "./tool-names";
import { approvalWords as words } from "./words";

export function AlwaysDialog({
  rule,
  onClose,
  onConfirm,
}: {
  rule: RuleTarget;
  onClose: () => void;
  onConfirm: () => Promise<void>;
}) {
  const t = words();
  const tools = useToolNames();
  const fault = useSignal<Error | null>(null);
  const past = useResource<{ rule: RuleTarget; matched: number; looked_at: number }>(
    withQuery("/v1/approvals/rules/preview", { tool: rule.tool, command: rule.command }),
  );
  return (
    <Dialog
      title={t.alwaysTitle}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button
            kind="primary"
            disabled={past.state === "loading"}
            onFault={(error) => (fault.value = error as Error)}
            onClick={onConfirm}
          >
            {t.saveRule}
          </Button>
        </>
      }
    >
      <p>{t.alwaysText}</p>
      <RuleText rule={rule} tools={tools} />
      {past.value ? (
        <p>{t.matched(past.value.matched, past.value.looked_at)}</p>
      ) : (
        past.state === "loading" && (
          <p class="quiet" role="status">
            {t.counting}
          </p>
        )
      )}
      {past.state === "fault" && <Fault error={past.error} retry={past.reload} />}
      {fault.value && <Fault title={t.failed} error={fault.value} />}
      <p class="faint">{t.protectedStays}</p>
    </Dialog>
  );
}
