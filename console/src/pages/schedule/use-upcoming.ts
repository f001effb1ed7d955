/** The moments of the coming days: the next run of each schedule, and for those that repeat the runs after it. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { ScheduleRow, SchedulePreview } from "toolyard-client";
import { api } from "../../lib/api";
import { toSeconds } from "./when";

export interface UpcomingRun {
  at: number;
  schedule: ScheduleRow;
}
const MOST_RULES = 12;
const DAYS = 7;

export function useUpcoming(rows: readonly ScheduleRow[]): UpcomingRun[] {
  const known = useSignal<ReadonlyMap<string, readonly number[]>>(new Map());
  const live = useMemo(() => rows.filter((row) => row.state !== "paused"), [rows]);
  // With the next run in the key: when that has passed, the runs after it are others.
  const rules = JSON.stringify(
    [...new Map(live.flatMap((row) => (row.cron ? [[keyOf(row), row.cron] as const] : [])))].slice(0, MOST_RULES),
  );
  useEffect(() => {
    const stop = new AbortController();
    for (const [key, cron] of (JSON.parse(rules) as [string, string][]).filter(([one]) => !known.peek().has(one))) {
      api<SchedulePreview>("/v1/schedules/preview", { body: { cron, days: DAYS }, signal: stop.signal }).then(
        (upcoming) => (known.value = new Map(known.peek()).set(key, upcoming.times.map(toSeconds))),
        () => undefined, // Then only its next run is drawn.
      );
    }
    return () => stop.abort();
  }, [known, rules]);
  return useMemo(
    () =>
      live
        .flatMap((schedule) =>
          [
            ...new Set([
              ...(schedule.due ? [schedule.due] : []),
              ...(schedule.cron ? (known.value.get(keyOf(schedule)) ?? []) : []),
            ]),
          ].map((at) => ({ at, schedule })),
        )
        .sort((a, b) => a.at - b.at),
    [known.value, live],
  );
}

function keyOf(row: ScheduleRow): string {
  return `${row.cron} ${row.due}`;
}
