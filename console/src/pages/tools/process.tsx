/** The process of a call. */
import type { CallDetail } from "toolyard-client";
import { useResource } from "../../lib/resource";
import { Fault, Loading } from "../../ui/state";
import { ProcessPart } from "../activity/process";
import { tryWords } from "./words-try";

export function ProcessView({ id }: { id: string }) {
  const call = useResource<CallDetail>(id ? `/v1/calls/${encodeURIComponent(id)}` : null);
  if (call.state === "fault") return <Fault error={call.error} retry={call.reload} />;
  if (id && !call.value) return <Loading rows={2} />;
  const process = call.value?.process;
  return process ? <ProcessPart process={process} /> : <p class="quiet">{tryWords().noProcess}</p>;
}
