/** Approvals and rules as the server describes them. */
import { mainArgument } from "../../lib/main-argument";

export interface RuleSpec {
  tool: string;
  command: string;
  effect: "allow" | "deny";
}
export interface Rule extends RuleSpec {
  id: string;
  by: string;
  created: number;
  chat?: string | null;
  hits?: number;
  last_used?: number | null;
}

/** A text of the arguments that is masked, or has masks in it: its JSON pointer, and how many characters are hidden. */
export interface MaskedText {
  at: string;
  characters: number;
}

export interface Approval {
  id: string;
  tool: string;
  state: string;
  caller: string;
  created: number;
  updated: number;
  expires: number | null;
  call_id: string;
  commands: string[];
  risk: string;
  origin: string;
  arguments?: unknown;
  summary?: string;
  maid?: string | null;
  hidden?: MaskedText[];
  protected?: boolean;
  because?: string | null;
  reason?: string;
  chat?: string | null;
  excerpt?: string;
  digest?: string;
  command_line?: string[] | null;
  patch?: unknown;
  patch_problem?: string | null;
  rule?: RuleSpec | null;
  answered?: number | null;
  answered_by?: string | null;
  note?: string;
}

export function nameOf(one: { tool: string; commands?: string[] }): string {
  return one.commands?.length ? `${one.tool}:${one.commands.join("+")}` : one.tool;
}

/** Its name with what it was about: `Write · notes.txt`. */
export function titleOf(one: Approval): string {
  return [nameOf(one), mainArgument(one.arguments)].filter(Boolean).join(" · ");
}

export function ruleName(rule: RuleSpec): string {
  return rule.command ? `${rule.tool}:${rule.command}` : rule.tool;
}
