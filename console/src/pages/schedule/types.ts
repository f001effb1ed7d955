/** A schedule as the server describes it. */
import type { MaskedText } from "../approvals/types";

export type Late = "no_host" | "busy" | "storage";
export interface Run {
  call_id: string;
  state: string;
  text: string;
  at: number;
  late_s?: number;
  late_because?: Late;
}
export interface Schedule {
  id: string;
  tool: string;
  state: string;
  caller: string;
  created: number;
  updated: number;
  due: number | null;
  scheduled_for: string;
  at: string | null;
  cron: string | null;
  zone: string;
  arguments: Record<string, unknown>;
  maid?: string | null;
  origin: string;
  runs: Run[];
  chat?: string | null;
  chat_kept?: boolean;
  /** Nobody has approved its call yet. */
  proposed: boolean;
  /** In the detail only: the masked texts of the arguments. */
  hidden?: MaskedText[];
  /** Its state, or `proposed`, `late`, or `blocked` by an approval. */
  condition: string;
  late_s: number | null;
  late_because: Late | null;
  approval: string | null;
}
export interface Preview {
  at: string | null;
  times: string[];
  in_seconds: number | null;
  zone: string;
  offset: string;
  note: string;
  problem: string | null;
}

export const schedulePath = (id: string) => `/v1/schedules/${encodeURIComponent(id)}`;
export const TABS = {
  next: ["scheduled", "running", "paused"],
  missed: ["expired", "interrupted", "failed"],
  past: ["done", "cancelled"],
} as const;
export type Tab = keyof typeof TABS;

const LATE_S = 60;

/** The condition at this moment: a schedule that was on time when it was loaded may be late by now. */
export function conditionOf(one: Schedule, now: number): string {
  const isAhead = one.condition === "scheduled" || one.condition === "proposed";
  return isAhead && one.due !== null && now / 1000 - one.due > LATE_S ? "late" : one.condition;
}

/** The arguments in a few words. */
export function summary(given: Record<string, unknown>): string {
  return Object.entries(given)
    .map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ")
    .slice(0, 200)
    .replaceAll("\n", " ");
}
