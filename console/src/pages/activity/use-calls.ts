/** The calls that fit the filters of the address: those that run first, then the rest, newest first. */
import { useMemo, useRef } from "preact/hooks";
import type { CallRow } from "toolyard-client";
import { withQuery, type Page } from "../../lib/api";
import { useRecords, useResource, type Records } from "../../lib/resource";
import { queryParam } from "../../lib/router";
import { callerFromName } from "../../lib/caller";
import { KEYS, parseMoment, type CallQuery } from "./query";
import { CALL_TOPICS, callPath } from "./types";

export const FILTERS = ["q", ...KEYS] as const;
// What other pages link to says "started" or "running" for the same.
const RUNNING = "running";

/** `atMost`: of the calls that come while it is paused an event tells too little to count them by these filters. */
export interface Calls extends Records<CallRow> {
  visibleCalls: CallRow[];
  filtered: boolean;
  atMost: boolean;
}

export function useCalls(): Calls {
  const { q, tool, ...typed } = currentQuery();
  const [since, before] = [useMoment(typed.since), useMoment(typed.before)];
  const [states, codes] = [splitValues(typed.state), splitValues(typed.code)];
  const caller = typed.caller && callerFromName(typed.caller);
  const filters = { search: q, code: codes, tool, caller, since, before };
  const list = useRecords<CallRow>(
    withQuery("/v1/calls", { limit: 100, state: states, ...filters }),
    CALL_TOPICS,
    callPath,
    (data) =>
      (!tool || data.tool === tool) &&
      (!caller || data.caller === caller) &&
      (!states.length || states.includes(String(data.state))),
  );
  const runs = useResource<Page<CallRow>>(
    codes.length || (states.length && !states.includes(RUNNING))
      ? null
      : withQuery("/v1/calls", { limit: 200, state: RUNNING, ...filters }),
    CALL_TOPICS,
  );
  // While paused nothing may move, the rows on top neither.
  const lastRows = useRef<readonly CallRow[]>([]);
  if (!list.paused) lastRows.current = runs.value?.data ?? [];
  const running = lastRows.current;
  const visibleCalls = useMemo(() => merge(list.rows, running), [list.rows, running]);
  return {
    ...list,
    visibleCalls: visibleCalls,
    atMost: !!(q || codes.length || before),
    filtered: FILTERS.some((key) => queryParam(key)),
  };
}

/** The filters of the address. */
export function currentQuery(): CallQuery {
  return Object.fromEntries(FILTERS.map((key) => [key, queryParam(key)])) as CallQuery;
}

/** Fixed when it is chosen: a border that moved each second would load the list each second. */
function useMoment(text: string): number | null {
  return useMemo(() => (text ? parseMoment(text, new Date()) : null), [text]);
}

const splitValues = (values: string) => values.split(",").filter(Boolean);

function merge(rows: readonly CallRow[], running: readonly CallRow[]): CallRow[] {
  const ended = new Set(rows.filter((row) => row.state !== RUNNING).map((row) => row.id));
  const top = new Map<string, CallRow>();
  for (const row of [...running, ...rows]) if (row.state === RUNNING && !ended.has(row.id)) top.set(row.id, row);
  return [...[...top.values()].sort((a, b) => b.started - a.started), ...rows.filter((row) => !top.has(row.id))];
}
