/** The calls that fit the filters of the address: those that run first, then the rest, newest first. */
import { useMemo, useRef } from "preact/hooks";
import { withQuery, type Page } from "../../lib/api";
import { useRecords, useResource, type Records } from "../../lib/resource";
import { queryParam } from "../../lib/router";
import { CALL_TOPICS, callPath, type Call } from "./types";

const SPANS: Record<string, number> = { hour: 3600, day: 86400, week: 7 * 86400 };
export const FILTERS = ["q", "state", "tool", "caller", "since"] as const;
// What other pages link to says "started" or "running" for the same.
const RUNNING = "running";

/** `atMost`: of the calls that come while it is paused an event tells too little to count them by these filters. */
export interface Calls extends Records<Call> {
  visibleCalls: Call[];
  filtered: boolean;
  atMost: boolean;
}

export function useCalls(): Calls {
  const [search, state, tool, caller, span] = FILTERS.map(queryParam) as [string, string, string, string, string];
  // Fixed when it is chosen: a border that moved each second would load the list each second.
  const since = useMemo(() => (SPANS[span] ? Math.floor(Date.now() / 1000) - SPANS[span] : null), [span]);
  const filters = { search, tool, caller, since };
  const list = useRecords<Call>(
    withQuery("/v1/calls", { limit: 100, state, ...filters }),
    CALL_TOPICS,
    callPath,
    (data) => (!tool || data.tool === tool) && (!caller || data.caller === caller) && (!state || data.state === state),
  );
  const runs = useResource<Page<Call>>(
    state && state !== RUNNING ? null : withQuery("/v1/calls", { limit: 200, state: RUNNING, ...filters }),
    CALL_TOPICS,
  );
  // While paused nothing may move, the rows on top neither.
  const lastRows = useRef<readonly Call[]>([]);
  if (!list.paused) lastRows.current = runs.value?.data ?? [];
  const running = lastRows.current;
  const visibleCalls = useMemo(() => merge(list.rows, running), [list.rows, running]);
  return { ...list, visibleCalls: visibleCalls, atMost: !!search, filtered: FILTERS.some((key) => queryParam(key)) };
}

function merge(rows: readonly Call[], running: readonly Call[]): Call[] {
  const ended = new Set(rows.filter((row) => row.state !== RUNNING).map((row) => row.id));
  const top = new Map<string, Call>();
  for (const row of [...running, ...rows]) if (row.state === RUNNING && !ended.has(row.id)) top.set(row.id, row);
  return [...[...top.values()].sort((a, b) => b.started - a.started), ...rows.filter((row) => !top.has(row.id))];
}
