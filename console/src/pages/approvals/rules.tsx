/** The rules that answer by themselves: what they say, how often they did, and how to end them. */
import { useSignal } from "@preact/signals";
import type { RuleRow, ToolSummary } from "toolyard-client";
import { api } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { showToast } from "../../lib/toast";
import { revealHidden } from "../../lib/hidden-characters";
import { callerName } from "../../lib/caller";
import { Button, IconButton } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Empty, Fault, Loading, Notice } from "../../ui/state";
import { Ago } from "../../ui/time";
import { NewRule } from "./new-rule";
import { RuleText } from "./rule-text";
import { RuleTest } from "./rule-test";
import { useToolNames } from "./tool-names";
import { ruleName } from "./types";
import { approvalWords as words } from "./words";

export function Rules() {
  const t = words();
  const rules = useResource<{ data: RuleRow[] }>("/v1/approvals/rules", ["approval.", "call.finished"]);
  const tools = useToolNames();
  const writing = useSignal<RuleRow | "new" | null>(null);
  const ending = useSignal<RuleRow | null>(null);
  const all = rules.value?.data ?? [];
  return (
    <>
      <div class="row">
        <Button kind="primary" sign="plus" onClick={() => void (writing.value = "new")}>
          {t.addRule}
        </Button>
        {all.length > 0 && (
          <Button sign="download" onClick={() => exportRules(all)}>
            {t.exportRules}
          </Button>
        )}
      </div>
      {rules.state === "loading" && !rules.value && <Loading rows={3} />}
      {rules.state === "fault" && <Fault error={rules.error} retry={rules.reload} />}
      {rules.value &&
        (all.length ? (
          <ul class="apr-rules">
            {all.map((rule) => (
              <RuleEntry
                key={rule.id}
                rule={rule}
                tools={tools}
                onEdit={() => (writing.value = rule)}
                onRevoke={() => (ending.value = rule)}
              />
            ))}
          </ul>
        ) : (
          <Empty sign="approvals" title={t.rulesNone}>
            {t.rulesNoneText}
          </Empty>
        ))}
      <Notice>
        {
          <>
            <strong>{t.protectedTitle}</strong>
            <p>{t.protectedText}</p>
          </>
        }
      </Notice>
      <RuleTest />
      {writing.value && (
        <NewRule
          before={writing.value === "new" ? null : writing.value}
          onClose={() => (writing.value = null)}
          onSaved={() => {
            writing.value = null;
            rules.reload();
          }}
        />
      )}
      {ending.value && (
        <RevokeDialog
          rule={ending.value}
          tools={tools}
          onClose={() => (ending.value = null)}
          onDone={() => {
            ending.value = null;
            rules.reload();
          }}
        />
      )}
    </>
  );
}

function RuleEntry({
  rule,
  tools,
  onEdit,
  onRevoke,
}: {
  rule: RuleRow;
  tools: readonly ToolSummary[];
  onEdit: () => void;
  onRevoke: () => void;
}) {
  const t = words();
  return (
    <li class="card" data-row tabIndex={-1}>
      <div class="grow">
        <RuleText rule={rule} tools={tools} />
        <p class="faint">
          {rule.hits ? t.hits(rule.hits) : t.unused}
          {rule.last_used ? (
            <>
              {` · ${t.lastUsed} `}
              <Ago at={rule.last_used} />
            </>
          ) : null}
          {` · ${t.createdBy(revealHidden(callerName(rule.by)))} `}
          <Ago at={rule.created} />
          {rule.chat && ` · ${t.onlyChat}`}
        </p>
      </div>
      {!rule.chat && <IconButton label={`${t.editRule}: ${ruleName(rule)}`} sign="edit" onClick={onEdit} />}
      <Button kind="danger" onClick={onRevoke}>
        {t.revoke}
      </Button>
    </li>
  );
}

function RevokeDialog({
  rule,
  tools,
  onClose,
  onDone,
}: {
  rule: RuleRow;
  tools: readonly ToolSummary[];
  onClose: () => void;
  onDone: () => void;
}) {
  const t = words();
  const fault = useSignal<Error | null>(null);
  const revoke = async () => {
    await api(`/v1/approvals/rules/${encodeURIComponent(rule.id)}`, { method: "DELETE" });
    showToast(`${t.revoke}: ${ruleName(rule)}`);
    onDone();
  };
  return (
    <Dialog
      title={t.revokeAsk(ruleName(rule))}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="danger" onFault={(error) => (fault.value = error as Error)} onClick={revoke}>
            {t.revoke}
          </Button>
        </>
      }
    >
      <RuleText rule={rule} tools={tools} />
      <p>{rule.effect === "allow" ? t.revokeAllow : t.revokeDeny}</p>
      {fault.value && <Fault error={fault.value} />}
    </Dialog>
  );
}

/** The rules as a file, without what only this server knows of them. */
function exportRules(rules: readonly RuleRow[]): void {
  const exported = rules.filter((rule) => !rule.chat).map(({ tool, command, effect }) => ({ tool, command, effect }));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(
    new Blob([`${JSON.stringify({ rules: exported }, null, 2)}\n`], { type: "application/json" }),
  );
  link.download = "toolyard-rules.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
