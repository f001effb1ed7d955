/** When what happened to a call, as far as it is known, and how long it took from each step to the next. */
import type { CallDetail, TimelineStep } from "toolyard-client";
import { formatAbsolute, formatDuration } from "../../lib/clock";
import { revealHidden } from "../../lib/hidden-characters";
import { callerName } from "../../lib/caller";
import { Chip, StateChip } from "../../ui/chip";
import { stateOf } from "./types";
import { activityWords as words, resultOf, stepOf } from "./words";

export function Timeline({ call }: { call: CallDetail }) {
  const t = words();
  const known: (Pick<TimelineStep, "at" | "what"> & Partial<TimelineStep>)[] = call.timeline?.length
    ? call.timeline
    : [{ at: call.started, what: "called" }, ...(call.ended ? [{ at: call.ended, what: "ended" }] : [])];
  return (
    <ol class="act-timeline">
      {known.map((step, at) => (
        <li key={at}>
          <strong>{stepOf(t, step.what)}</strong>
          {step.by && (
            <span>
              <span class="quiet">{t.by}</span> <span data-given>{revealHidden(callerName(step.by))}</span>
            </span>
          )}
          {step.result && <Result result={step.result} />}
          {step.task && (
            <a class="mono" data-given title={step.task} href={`/tasks?task=${encodeURIComponent(step.task)}`}>
              {step.task.slice(0, 13)}
            </a>
          )}
          {at > 0 && <span class="quiet tabular">{t.later(formatDuration(step.at - known[at - 1]!.at))}</span>}
          <time class="faint" dateTime={new Date(step.at * 1000).toISOString()}>
            {formatAbsolute(step.at)}
          </time>
        </li>
      ))}
      {call.state !== "running" && (
        <li class="last">
          <StateChip state={stateOf(call)} />
          {typeof call.time_ms === "number" && known.some((step) => step.what === "started") && (
            <span class="quiet tabular">{t.ranFor(formatDuration(call.time_ms / 1000))}</span>
          )}
          {call.waited_ms ? <span class="quiet tabular">{t.waited(formatDuration(call.waited_ms / 1000))}</span> : null}
        </li>
      )}
    </ol>
  );
}

function Result({ result }: { result: string }) {
  const word = resultOf(words(), result);
  return word ? (
    <Chip tone={result === "accepted" ? "good" : result === "refused" ? "bad" : "plain"}>{word}</Chip>
  ) : (
    <StateChip state={result} />
  );
}
