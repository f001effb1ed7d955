/** The two numbers that every page shows: calls that run, and approvals that wait. */
import { signal } from "@preact/signals";
import { api, may, type Page } from "./api";
import { hear } from "./live";

export interface Waiting {
  id: string;
  tool: string;
  call_id: string;
}
export const running = signal<number>(0);
export const waiting = signal<readonly Waiting[]>([]);
let timer = 0;
let asked = 0;
let shown = 0;

export function feelPulse(): void {
  void look();
  hear(["call.", "approval."], () => {
    if (!timer)
      timer = window.setTimeout(() => {
        timer = 0;
        void look();
      }, 400);
  });
}

export async function look(): Promise<void> {
  const ours = ++asked;
  const quiet = <T>(): Page<T> => ({ data: [], next: null });
  const [calls, approvals] = await Promise.all([
    may("tools")
      ? api<Page<{ id: string }>>("/v1/calls?state=running&limit=200").catch(quiet<{ id: string }>)
      : quiet<{ id: string }>(),
    may("approve")
      ? api<Page<Waiting>>("/v1/approvals?state=pending&limit=200").catch(quiet<Waiting>)
      : quiet<Waiting>(),
  ]);
  if (ours < shown) return; // answers may overtake each other
  shown = ours;
  // A call that waits for a person does not run, whatever its record says.
  const asking = new Set(approvals.data.map((one) => one.call_id));
  running.value = calls.data.filter((call) => !asking.has(call.id)).length;
  waiting.value = approvals.data;
}
