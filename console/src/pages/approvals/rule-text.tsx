/** A rule as it is kept: its effect, its tool, its command. */
import type { RuleTarget, ToolSummary } from "toolyard-client";
import { revealHidden } from "../../lib/hidden-characters";
import { Chip } from "../../ui/chip";
import { ruleName } from "./types";
import { approvalWords as words } from "./words";

/** `tools` are those that there are: only a tool with commands has all of them allowed. */
export function RuleText({
  rule,
  tools,
}: {
  rule: RuleTarget;
  tools: readonly Pick<ToolSummary, "name" | "commands">[];
}) {
  const t = words();
  const hasCommands = !!tools.find((one) => one.name === rule.tool)?.commands?.length;
  return (
    <div class="apr-rule-text">
      <Chip tone={rule.effect === "allow" ? "good" : "bad"}>{rule.effect === "allow" ? t.ruleAllow : t.ruleDeny}</Chip>
      <code>{revealHidden(ruleName(rule))}</code>
      {!rule.command && hasCommands && <span class="faint">{t.allCommands}</span>}
    </div>
  );
}
