/** The two counters that every page shows: running calls and pending approvals. */
import { signal } from "@preact/signals";
import type { ApprovalRow } from "toolyard-client";
import { api, hasScope, type Page } from "./api";
import { subscribe } from "./events";

export const runningCalls = signal<number>(0);
export const pendingApprovals = signal<readonly ApprovalRow[]>([]);
/** True if a call is waiting for approval. */
export const isWaiting = (call: string) => pendingApprovals.value.some((one) => one.call_id === call);
let timer = 0;
let requests = 0;
let newestShown = 0;

export function watchCounters(): void {
  void refreshCounters();
  subscribe(["call.started", "call.finished", "approval."], () => {
    if (!timer)
      timer = window.setTimeout(() => {
        timer = 0;
        void refreshCounters();
      }, 400);
  });
}

export async function refreshCounters(): Promise<void> {
  const ours = ++requests;
  const quiet = <T>(): Page<T> => ({ data: [], next: null });
  const [calls, approvals] = await Promise.all([
    hasScope("tools")
      ? api<Page<{ id: string }>>("/v1/calls?state=running&limit=200").catch(quiet<{ id: string }>)
      : quiet<{ id: string }>(),
    hasScope("approve")
      ? api<Page<ApprovalRow>>("/v1/approvals?state=pending&limit=200").catch(quiet<ApprovalRow>)
      : quiet<ApprovalRow>(),
  ]);
  if (ours < newestShown) return; // answers may overtake each other
  newestShown = ours;
  // A call that waits for a person does not run, whatever its record says.
  const asking = new Set(approvals.data.map((one) => one.call_id));
  runningCalls.value = calls.data.filter((call) => !asking.has(call.id)).length;
  pendingApprovals.value = approvals.data;
}
