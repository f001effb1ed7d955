/** A schedule as the server describes it. */
import type { ScheduleRow } from "toolyard-client";

export const schedulePath = (id: string) => `/v1/schedules/${encodeURIComponent(id)}`;
export const TABS = {
  next: ["scheduled", "running", "paused"],
  missed: ["expired", "interrupted", "failed"],
  past: ["done", "cancelled"],
} as const;
export type Tab = keyof typeof TABS;

const LATE_S = 60;

/** The condition at this moment: a schedule that was on time when it was loaded may be late by now. */
export function conditionOf(one: ScheduleRow, now: number): string {
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
