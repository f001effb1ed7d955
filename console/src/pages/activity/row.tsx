/** One call in the list: a line on a desktop, two on a phone. The row opens the call; Stop and links stand beside
 * it. */
import type { CallRow } from "toolyard-client";
import { waitingLink } from "../../lib/approval-link";
import { api } from "../../lib/api";
import { chatLink } from "../../lib/chat-link";
import { formatAbsolute, formatBytes, formatMoment } from "../../lib/clock";
import { isWaiting } from "../../lib/counters";
import { progressOf } from "../../lib/progress";
import { route } from "../../lib/router";
import { showToast } from "../../lib/toast";
import { messageIn, messageText } from "../../lib/messages";
import { revealHidden } from "../../lib/hidden-characters";
import { callerName } from "../../lib/caller";
import { IconButton } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { Icon, type Sign } from "../../ui/icon";
import { Elapsed } from "../../ui/time";
import { callPath, nameOf, stateOf } from "./types";
import { activityWords as words, originOf } from "./words";

export function Row({ call }: { call: CallRow }) {
  const t = words();
  const runs = call.state === "running";
  const waits = runs && isWaiting(call.id);
  const chat = chatLink(call.chat);
  return (
    <div class={`rec-row act-row${runs ? " runs" : ""}`}>
      <a class="rec-open act-open" data-row href={hrefOf(call.id)}>
        <When at={call.started} />
        <span class="act-who cut">
          <span data-given title={call.caller}>
            {revealHidden(callerName(call.caller))}
          </span>
          <span class="faint"> {originOf(t, call.origin)}</span>
        </span>
        <span class="act-what cut" data-given title={`${revealHidden(nameOf(call))} ${revealHidden(summarize(call))}`}>
          <span class="mono act-name">{revealHidden(nameOf(call))}</span>{" "}
          {call.error && <span class="mono act-code">{call.reason ?? call.error.code} </span>}
          {revealHidden((runs && progressOf(call.id).value.lines.at(-1)) || summarize(call))}
        </span>
        <span class="act-state">
          <StateChip state={waits ? "approval" : stateOf(call)} />
        </span>
        <span class="act-duration tabular">
          <Duration call={call} />
        </span>
        <span class="act-size tabular faint">
          {typeof call.bytes_out === "number" ? formatBytes(call.bytes_out) : ""}
        </span>
      </a>
      <span class="act-side">
        {waits && <Jump href={waitingLink(call.id)} label={t.answer} sign="approvals" />}
        {call.tasks?.[0] && (
          <Jump href={`/tasks?task=${encodeURIComponent(call.tasks[0])}`} label={t.task} sign="tasks" />
        )}
        {chat && !runs && <Jump href={chat} label={t.chat} sign="chat" />}
        {runs && (
          <IconButton label={`${t.stop} ${nameOf(call)}`} sign="stop" kind="danger" onClick={() => stopCall(call.id)} />
        )}
      </span>
    </div>
  );
}

/** The duration of a call; while it runs, the time since it was called, or since `from`. */
export function Duration({ call, from = call.started }: { call: CallRow; from?: number }) {
  if (call.state === "running") return <Elapsed from={from} />;
  return (
    <Elapsed
      from={0}
      to={typeof call.time_ms === "number" ? call.time_ms / 1000 : (call.ended ?? call.started) - call.started}
    />
  );
}

export async function stopCall(id: string): Promise<void> {
  await api(`${callPath(id)}/cancel`, { method: "POST" });
  showToast(words().stopping, "plain");
}

function Jump({ href, label, sign }: { href: string; label: string; sign: Sign }) {
  return (
    <a class="button quiet icon-only" href={href} aria-label={label} title={label}>
      <Icon sign={sign} size={16} />
    </a>
  );
}

function When({ at }: { at: number }) {
  return (
    <time class="act-time tabular faint" dateTime={new Date(at * 1000).toISOString()} title={formatAbsolute(at)}>
      {formatMoment(at)}
    </time>
  );
}

/** The address of this page with that call open. */
function hrefOf(id: string): string {
  const query = new URLSearchParams(route.value.query);
  query.set("call", id);
  query.delete("part");
  query.delete("view");
  return `/activity?${query}`;
}

/** The first words of the result, or of what was asked. */
function summarize(call: CallRow): string {
  if (call.error) return messageText(messageIn(call.error, "message")).slice(0, 160);
  if (call.text) return messageText(messageIn(call, "text")).slice(0, 160).split("\n", 1)[0]!;
  const given = call.arguments;
  if (typeof given !== "object" || given === null) return "";
  return Object.entries(given)
    .filter(([key]) => key !== "command")
    .map(([, value]) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(" ")
    .slice(0, 160)
    .replaceAll("\n", " ");
}
