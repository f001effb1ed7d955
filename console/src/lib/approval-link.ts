/** The page of one approval, where it is answered. */
import { pendingApprovals } from "./counters";

export function approvalLink(id: string): string {
  return `/approvals/${encodeURIComponent(id)}`;
}

/** The page of the approval that a call waits for: the counters know all of those. */
export function waitingLink(call: string): string {
  const one = pendingApprovals.value.find((other) => other.call_id === call);
  return one ? approvalLink(one.id) : "/approvals";
}
