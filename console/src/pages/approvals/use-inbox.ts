/** Pending approvals, oldest first, and those answered while this page is open: they stay, greyed out, with who and
 * when. */
import { useSignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { api, type ApiError } from "../../lib/api";
import { subscribe } from "../../lib/events";
import { useRecords, type State } from "../../lib/resource";
import { holdPresses } from "./press-guard";
import { approvalPath } from "./use-approval";
import type { Approval } from "./types";

export interface Inbox {
  state: State;
  error: ApiError | null;
  open: Approval[];
  all: Approval[];
  settle: (id: string) => Promise<void>;
  reload: () => void;
  clear: () => void;
}

export function useInbox(): Inbox {
  const waiting = useRecords<Approval>("/v1/approvals?state=pending&limit=200", ["approval."]);
  const seen = useRef(new Map<string, Approval>());
  const asking = useRef(new Set<string>());
  const ended = useSignal<ReadonlyMap<string, Approval>>(new Map());

  const settle = useCallback(
    async (id: string) => {
      if (!seen.current.has(id) || ended.peek().has(id) || asking.current.has(id)) return;
      asking.current.add(id);
      try {
        const now = await api<Approval>(approvalPath(id));
        if (now.state === "pending") return;
        holdPresses();
        ended.value = new Map(ended.peek()).set(id, { ...seen.current.get(id)!, ...now });
      } catch {
        // Unreachable: the list itself tells, and asks again when the connection is back.
      } finally {
        asking.current.delete(id);
      }
    },
    [ended],
  );

  useEffect(
    () =>
      subscribe(["approval."], (event) => {
        if (event.type !== "approval.requested" && typeof event.data.id === "string") void settle(event.data.id);
      }),
    [settle],
  );

  const { state, rows, next, more } = waiting;
  useEffect(() => {
    if (state !== "ready") return;
    const open = new Set(rows.map((row) => row.id));
    for (const row of rows) seen.current.set(row.id, row);
    for (const id of seen.current.keys()) if (!open.has(id)) void settle(id);
    // Oldest first needs them all.
    if (next) more();
  }, [more, next, rows, settle, state]);

  const open = rows.filter((row) => !ended.value.has(row.id)).sort(compareAge);
  return {
    state,
    error: waiting.error,
    open,
    all: [...open, ...ended.value.values()].sort(compareAge),
    settle,
    reload: waiting.reload,
    clear: () => {
      for (const id of ended.peek().keys()) seen.current.delete(id);
      ended.value = new Map();
    },
  };
}

function compareAge(a: Approval, b: Approval): number {
  return a.created - b.created || (a.id < b.id ? -1 : 1);
}
