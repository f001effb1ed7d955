/** One schedule in the list. */
import type { LateReason, ScheduleRow, ScheduleRun } from "toolyard-client";
import { formatAbsolute, formatDuration, now } from "../../lib/clock";
import { messageIn, messageText } from "../../lib/messages";
import { route } from "../../lib/router";
import { revealHidden } from "../../lib/hidden-characters";
import { callerName } from "../../lib/caller";
import { IconButton } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { Ago } from "../../ui/time";
import { runAction } from "./actions";
import { cronWords } from "./cron-words";
import { conditionOf, summary } from "./types";
import { formatIso } from "./when";
import { scheduleWords as words } from "./words";

export function Row({ one }: { one: ScheduleRow }) {
  const t = words();
  const last = one.runs[one.runs.length - 1];
  const why = reasonOf(one);
  const subtitle = why || `${one.maid || callerName(one.caller)} · ${summary(one.arguments)}`;
  return (
    <li class={`sch-row${one.state === "paused" ? " paused" : ""}`}>
      <a class="sch-open" data-row href={hrefOf(one.id)}>
        <span class="sch-when">
          <time class="tabular" dateTime={one.scheduled_for} title={one.due ? formatAbsolute(one.due) : undefined}>
            {formatIso(one.scheduled_for)}
          </time>
          <span class="faint tabular">
            <TimeLeft one={one} />
          </span>
        </span>
        <span class="sch-what">
          <span class="cut" title={one.cron ? `${one.tool} ${one.cron}` : one.tool} data-given>
            <strong class="mono">{revealHidden(one.tool)}</strong>
            {one.cron && <span class="faint"> {cronWords(one.cron) ?? t.every(one.cron)}</span>}
          </span>
          <span class={`${why ? "sch-reason" : "faint"} cut`} data-given title={revealHidden(subtitle)}>
            {revealHidden(subtitle)}
          </span>
        </span>
        <span class="sch-state">
          <Condition one={one} />
          {last && one.state === "scheduled" && (
            <span class="faint">
              {t.last} <StateChip state={last.state} /> <Ago at={last.at} />
            </span>
          )}
        </span>
      </a>
      <span class="sch-side">
        {((one.state === "scheduled" && !one.proposed) || one.state === "expired") && (
          <IconButton label={`${t.run}: ${one.tool}`} sign="play" onClick={() => runAction(one.id, "run")} />
        )}
        {one.state === "scheduled" && !one.proposed && (
          <IconButton label={`${t.pause}: ${one.tool}`} sign="pause" onClick={() => runAction(one.id, "pause")} />
        )}
        {one.state === "paused" && (
          <IconButton label={`${t.resume}: ${one.tool}`} sign="resume" onClick={() => runAction(one.id, "resume")} />
        )}
      </span>
    </li>
  );
}

/** The condition of a schedule: its state, or what delays it. */
export function Condition({ one }: { one: ScheduleRow }) {
  const condition = conditionOf(one, now.value);
  return <StateChip state={condition === "blocked" ? "approval" : condition} />;
}

/** Until its time, as long as there is one ahead; since its time, when it should have begun. */
export function TimeLeft({ one }: { one: ScheduleRow }) {
  const t = words();
  if (one.state !== "scheduled" || one.due === null) return null;
  const left = one.due - now.value / 1000;
  if (left > 0) return <>{t.inTime(formatDuration(Math.ceil(left)))}</>;
  return <>{conditionOf(one, now.value) === "late" ? t.lateBy(formatDuration(Math.floor(-left))) : t.overdue}</>;
}

/** The reason why it did not run, has not run yet, or failed. */
export function reasonOf(one: ScheduleRow): string {
  const t = words();
  const last = one.runs[one.runs.length - 1];
  const condition = conditionOf(one, now.value);
  if (condition === "late") return one.late_because ? lateReason(one.late_because as LateReason) : t.whyLate;
  if (one.proposed) return t.whyProposed;
  if (condition === "blocked") return t.whyBlocked;
  if (condition === "expired") return t.whyExpired;
  if (condition === "interrupted") return runText(last) || t.whyInterrupted;
  return condition === "failed" ? runText(last) || t.whyFailed : "";
}

function runText(run: ScheduleRun | undefined): string {
  return run ? messageText(messageIn(run, "text")) : "";
}

export function lateReason(why: LateReason): string {
  const t = words();
  return { no_host: t.lateNoHost, busy: t.lateBusy, storage: t.lateStorage }[why];
}

function hrefOf(id: string): string {
  const query = new URLSearchParams(route.value.query);
  query.set("schedule", id);
  return `/schedule?${query}`;
}
