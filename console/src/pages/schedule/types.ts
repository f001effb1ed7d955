/** What the server tells of a schedule. */
export interface Run { call_id: string; state: string; text: string; at: number }
export interface Schedule {
  id: string; tool: string; state: string; caller: string; created: number; updated: number; due: number | null; scheduled_for: string;
  at: string | null; cron: string | null; zone: string; arguments: Record<string, unknown>; maid?: string | null; origin: string; runs: Run[]; chat?: string | null;
}
export interface Preview { times: string[]; in_seconds: number | null; zone: string; note: string; problem: string | null }

export const schedulePath = (id: string) => `/v1/schedules/${encodeURIComponent(id)}`;
export const TABS = { next: ["scheduled", "running", "paused"], missed: ["expired", "interrupted", "failed"], past: ["done", "cancelled"] } as const;
export type Tab = keyof typeof TABS;

/** What it will be called with, in a few words. */
export function summary(given: Record<string, unknown>): string {
  return Object.entries(given).map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ").slice(0, 200).replaceAll("\n", " ");
}
