/** When what happened to a call, as far as it is known. */
import { absolute, duration } from "../../lib/clock";
import { StateChip } from "../../ui/chip";
import type { WholeCall } from "./types";
import { activityWords as words, stepOf } from "./words";

export function Timeline({ call }: { call: WholeCall }) {
  const t = words();
  const known = call.timeline?.length ? call.timeline : [{ at: call.started, what: "started" }, ...(call.ended ? [{ at: call.ended, what: "ended" }] : [])];
  const first = known[0]!.at;
  return (
    <ol class="act-timeline">
      {known.map((step, at) => (
        <li key={at}>
          <strong>{stepOf(t, step.what)}</strong>
          {step.at > first && <span class="quiet tabular">{t.after(duration(step.at - first))}</span>}
          <time class="faint" dateTime={new Date(step.at * 1000).toISOString()}>{absolute(step.at)}</time>
        </li>
      ))}
      {call.state !== "running" && <li class="last"><StateChip state={call.state} /></li>}
    </ol>
  );
}
