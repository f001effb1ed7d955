/** Tool calls at their place in the answer: one line each, several in a row together. A line keeps its height whatever
 * happens to its call; what a call asks or brings stands under all of them. */
import { useSignal } from "@preact/signals";
import type { CallDetail } from "toolyard-client";
import { api } from "../../lib/api";
import { isWaiting } from "../../lib/counters";
import { lazyPage } from "../../lib/lazy-page";
import { formatRequest } from "../../lib/request-block";
import { revealHidden } from "../../lib/hidden-characters";
import { Button, CopyButton, IconButton } from "../../ui/button";
import { CanvasButton } from "../../ui/canvas-button";
import { CallProgress } from "../../ui/call-progress";
import { StateChip } from "../../ui/chip";
import { Icon } from "../../ui/icon";
import { MediaView } from "../../ui/media";
import { Elapsed } from "../../ui/time";
import type { Call } from "./model";
import { TaskChip } from "./task";
import { taskKey, tasksOf, type ShownTasks } from "./tasks";
import { words } from "./words";

const ApprovalPanels = lazyPage<{ calls: Call[]; onAnswer: (id: string, answer: string) => void }>(() =>
  import("./approval").then((module) => ({ default: module.ApprovalPanels })),
);
const CallDetails = lazyPage<{ call: Call }>(() =>
  import("./details").then((module) => ({ default: module.CallDetails })),
);
export const loadCallParts = [ApprovalPanels.load, CallDetails.load];

const FOLDED = 5; // so many lines and more come folded when they are looked at later

export function Calls({
  calls: given,
  growing,
  shownTasks,
  onMark,
}: {
  calls: Call[];
  growing: boolean;
  shownTasks: ShownTasks;
  onMark: (id: string, answered: string) => void;
}) {
  const t = words();
  // A question outlives the reply that asked it, as when the server was restarted.
  const isUndecided = (call: Call) => call.state === "approval" || call.state === "cancelled";
  const isOpen = (call: Call) =>
    growing || Boolean(call.approval && !call.answered && isUndecided(call) && isWaiting(call.id));
  const calls = growing
    ? given
    : given.map((call) => (isOpen(call) ? { ...call, state: "approval" as const, ended: null } : call));
  const running = calls.filter((call) => call.ended === null).length;
  const rows = calls.map((call, at) => (
    <CallRow key={call.id || at} call={call} growing={isOpen(call)} onMark={onMark} />
  ));
  const failed = calls.filter((call) => call.state === "error").length;
  const folded = useSignal(calls.length >= FOLDED && !running && !growing).value; // what was open when it was made stays open
  const head = (
    <>
      {t.calls(calls.length)}
      {running > 0 && <span class="faint"> · {t.callsRunning(running)}</span>}
      {failed > 0 && <span class="problem"> · {t.callsFailed(failed)}</span>}
    </>
  );
  return (
    <div
      class="chat-calls"
      role="group"
      aria-label={calls.length > 1 ? t.calls(calls.length) : t.callOf(calls[0]!.tool)}
    >
      {folded ? (
        <details>
          <summary class="chat-calls-head">{head}</summary>
          {rows}
        </details>
      ) : (
        <>
          {calls.length > 1 && <div class="chat-calls-head">{head}</div>}
          {rows}
        </>
      )}
      {calls.some((call) => call.approval && !call.answered && isOpen(call)) && (
        <ApprovalPanels calls={calls.filter(isOpen)} onAnswer={onMark} />
      )}
      {calls.some((call) => call.media.length || call.left) && (
        <div class="chat-media">
          {calls.flatMap((call) =>
            call.media.map((uri, at) => <MediaView key={`${call.id}${at}`} uri={uri} label={t.mediaFrom(call.tool)} />),
          )}
          {calls
            .filter((call) => call.left)
            .map((call) => (
              <span key={call.id} class="faint">
                {t.leftOut(call.left)}
              </span>
            ))}
        </div>
      )}
      {calls.some((call) => call.canvas) && (
        <div class="row">{calls.map((call) => call.canvas && <CanvasButton key={call.id} path={call.canvas} />)}</div>
      )}
      {calls
        .flatMap(tasksOf)
        .filter((task) => !shownTasks.value.has(taskKey(task))) // what the reply makes of it need not name the task
        .map((task) => (
          <div key={taskKey(task)} class="chat-task-line">
            <TaskChip {...task} />
          </div>
        ))}
    </div>
  );
}

function CallRow({
  call,
  growing,
  onMark,
}: {
  call: Call;
  growing: boolean;
  onMark: (id: string, answered: string) => void;
}) {
  const t = words();
  const open = useSignal(false);
  const state = stateOf(call, growing);
  const block = async () => {
    const { arguments: given } = await api<CallDetail>(`/v1/calls/${encodeURIComponent(call.id)}`);
    return formatRequest(call.tool, given as Readonly<Record<string, unknown>>);
  };
  const stop = async () => {
    onMark(call.id, "stopped");
    await api(`/v1/calls/${encodeURIComponent(call.id)}/cancel`, { body: {} });
  };
  const name = call.command ? `${call.tool}:${call.command}` : call.tool;
  return (
    <div class="chat-call">
      <div class="chat-call-line">
        <button
          type="button"
          class="chat-call-open"
          aria-expanded={open.value}
          aria-label={`${name} · ${t.openCall}`}
          onClick={() => (open.value = !open.value)}
        >
          <Icon sign={open.value ? "down" : "right"} size={15} />
          <strong class="cut" title={name} data-given>
            {name}
          </strong>
        </button>
        {call.summary && (
          <span class="faint chat-summary" title={call.summary} data-given>
            <bdi>{revealHidden(call.summary)}</bdi>
          </span>
        )}
        <span class="faint chat-time">
          <Elapsed from={call.started} to={growing || call.ended ? call.ended : call.started} />
        </span>
        <StateChip state={state} />
        {call.ended === null && growing && call.id && (
          <IconButton label={t.stopCall} sign="stop" disabled={call.answered === "stopped"} onClick={stop} />
        )}
      </div>
      {call.ended === null && growing && call.id && (
        <div class="chat-call-progress">
          <CallProgress id={call.id} />
        </div>
      )}
      {open.value && (
        <div class="chat-call-body">
          <CallDetails call={call} />
          {call.id && (
            <div class="row">
              <a class="button" href={`/tools/${encodeURIComponent(call.tool)}?call=${encodeURIComponent(call.id)}`}>
                <Icon sign="retry" size={16} />
                <span>{t.retryCall}</span>
              </a>
              <CopyButton short={false} label={t.copyBlock} text={block} />
              <a class="button quiet" href={`/activity?call=${encodeURIComponent(call.id)}`}>
                <Icon sign="activity" size={16} />
                <span>{t.inActivity}</span>
              </a>
              {call.ended === null && growing && (
                <Button sign="stop" onClick={stop}>
                  {t.stopCall}
                </Button>
              )}
            </div>
          )}
        </div>
      )}
    </div>
  );
}

/** A call that its owner stopped ends as an error to the model; to the person it was cancelled. */
function stateOf(call: Call, growing: boolean): string {
  if (call.answered === "stopped" && call.state === "error") return "cancelled";
  if (call.answered === "denied" && call.ended !== null) return "denied";
  if (call.state === "approval")
    return call.answered
      ? call.answered === "allowed"
        ? "running"
        : call.answered
      : growing
        ? "approval"
        : "cancelled";
  if (call.state === "background") return "started";
  return call.state === "running" && !growing ? "cancelled" : call.state;
}
