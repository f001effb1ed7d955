/** A rule made or changed by hand: a tool, perhaps one command of it, and what becomes of its calls. */
import { useSignal } from "@preact/signals";
import type { RuleRow, RuleTarget } from "toolyard-client";
import { api } from "../../lib/api";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Select } from "../../ui/field";
import { Fault } from "../../ui/state";
import { RuleText } from "./rule-text";
import { SuggestField, useToolNames } from "./tool-names";
import { approvalWords as words } from "./words";

export function NewRule({
  before,
  onClose,
  onSaved,
}: {
  before: RuleRow | null;
  onClose: () => void;
  onSaved: () => void;
}) {
  const t = words();
  const tools = useToolNames();
  const rule = useSignal<RuleTarget>({
    tool: before?.tool ?? "",
    command: before?.command ?? "",
    effect: before?.effect ?? "deny",
  });
  const fault = useSignal<Error | null>(null);
  const change = (part: Partial<RuleTarget>) => (rule.value = { ...rule.value, ...part });
  const save = async () => {
    await api("/v1/approvals/rules", {
      body: { ...rule.value, tool: rule.value.tool.trim(), command: rule.value.command.trim() },
    });
    // The new one holds before the old one ends: there is no moment without either.
    if (before) await api(`/v1/approvals/rules/${encodeURIComponent(before.id)}`, { method: "DELETE" });
    onSaved();
  };
  return (
    <Dialog
      title={before ? t.editRule : t.addRule}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button
            kind="primary"
            disabled={!rule.value.tool.trim()}
            onFault={(error) => (fault.value = error as Error)}
            onClick={save}
          >
            {t.save}
          </Button>
        </>
      }
    >
      <Select
        label={t.effect}
        value={rule.value.effect}
        onInput={(effect) => change({ effect: effect as RuleTarget["effect"] })}
        options={[
          { value: "deny", name: t.deny },
          { value: "allow", name: t.allow },
        ]}
      />
      <SuggestField
        label={t.tool}
        required
        value={rule.value.tool}
        onInput={(tool) => change({ tool })}
        names={tools.map((one) => one.name)}
      />
      <SuggestField
        label={t.command}
        help={t.commandHelp}
        value={rule.value.command}
        onInput={(command) => change({ command })}
        names={tools.find((one) => one.name === rule.value.tool)?.commands ?? []}
      />
      {rule.value.tool.trim() && <RuleText rule={rule.value} tools={tools} />}
      {fault.value && <Fault error={fault.value} />}
    </Dialog>
  );
}
