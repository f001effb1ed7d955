/** One approval, loaded again when it is answered, here or elsewhere. */
import { useResource, type Resource } from "../../lib/resource";
import type { Approval } from "./types";

/** The path of an approval in the API. */
export function approvalPath(id: string): string {
  return `/v1/approvals/${encodeURIComponent(id)}`;
}

export function useApproval(id: string | null): Resource<Approval> {
  return useResource<Approval>(id === null ? null : approvalPath(id), ["approval."], (data) => data["id"] === id);
}
