/** A rule as it is kept: its effect, its tool, its command. */
import { revealHidden } from "../../lib/hidden-characters";
import { Chip } from "../../ui/chip";
import { ruleName, type RuleSpec } from "./types";
import { approvalWords as words } from "./words";

export function RuleText({ rule }: { rule: RuleSpec }) {
  const t = words();
  return (
    <div class="apr-rule-text">
      <Chip tone={rule.effect === "allow" ? "good" : "bad"}>{rule.effect === "allow" ? t.ruleAllow : t.ruleDeny}</Chip>
      <code>{revealHidden(ruleName(rule))}</code>
      {!rule.command && <span class="faint">{t.allCommands}</span>}
    </div>
  );
}
