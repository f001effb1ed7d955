/** Approvals and rules as the server describes them. */
import type { ApprovalDetail, ApprovalRow, RuleTarget } from "toolyard-client";
import { mainArgument } from "../../lib/main-argument";

/** A row of a list, or all of it: what only one of them has may be missing. */
export type Approval = Pick<ApprovalRow, keyof ApprovalRow & keyof ApprovalDetail> &
  Partial<ApprovalRow> &
  Partial<ApprovalDetail>;

export function nameOf(one: { tool: string; commands?: string[] }): string {
  return one.commands?.length ? `${one.tool}:${one.commands.join("+")}` : one.tool;
}

/** Its name with what it was about: `Write · notes.txt`. */
export function titleOf(one: Approval): string {
  return [nameOf(one), mainArgument(one.arguments)].filter(Boolean).join(" · ");
}

export function ruleName(rule: RuleTarget): string {
  return rule.command ? `${rule.tool}:${rule.command}` : rule.tool;
}
