/** Rows of a list under the day of their last change: today, yesterday, the last week, earlier; pinned ones first. */
export type DayGroup = "pinned" | "today" | "yesterday" | "week" | "earlier";

const DAY_MS = 86_400_000;

export function groupOf(row: { pinned: boolean; updated: number }, now: number): DayGroup {
  if (row.pinned) return "pinned";
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const at = row.updated * 1000;
  if (at >= midnight) return "today";
  // A day may have 23 or 25 hours.
  if (at >= new Date(midnight - DAY_MS / 2).setHours(0, 0, 0, 0)) return "yesterday";
  return at >= midnight - 7 * DAY_MS ? "week" : "earlier";
}

/** Rows that follow each other in the same group. */
export function groupRows<T, G>(rows: readonly T[], groupFor: (row: T) => G): { group: G; rows: T[] }[] {
  const groups: { group: G; rows: T[] }[] = [];
  for (const row of rows) {
    const group = groupFor(row);
    const last = groups.at(-1);
    if (last && last.group === group) last.rows.push(row);
    else groups.push({ group, rows: [row] });
  }
  return groups;
}
