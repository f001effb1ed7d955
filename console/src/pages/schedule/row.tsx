/** One schedule in the list. */
import { absolute, duration, now } from "../../lib/clock";
import { place } from "../../lib/router";
import { visible } from "../../lib/visible";
import { who } from "../../lib/who";
import { IconButton } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { Ago } from "../../ui/time";
import { step } from "./do";
import { conditionOf, summary, type Late, type Schedule } from "./types";
import { shown } from "./when";
import { scheduleWords as words } from "./words";

export function Row({ one }: { one: Schedule }) {
  const t = words();
  const last = one.runs[one.runs.length - 1];
  const why = reason(one);
  const told = why || `${one.maid || who(one.caller)} · ${summary(one.arguments)}`;
  return (
    <li class={`sch-row${one.state === "paused" ? " paused" : ""}`}>
      <a class="sch-open" data-row href={hrefOf(one.id)}>
        <span class="sch-when">
          <time class="tabular" dateTime={one.scheduled_for} title={one.due ? absolute(one.due) : undefined}>
            {shown(one.scheduled_for)}
          </time>
          <span class="faint tabular">
            <Left one={one} />
          </span>
        </span>
        <span class="sch-what">
          <span class="cut" title={one.cron ? `${one.tool} ${t.every(one.cron)}` : one.tool} data-given>
            <strong class="mono">{visible(one.tool)}</strong>
            {one.cron && <span class="faint mono"> {t.every(one.cron)}</span>}
          </span>
          <span class={`${why ? "sch-held" : "faint"} cut`} data-given title={visible(told)}>
            {visible(told)}
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
        {(one.state === "scheduled" || one.state === "expired") && (
          <IconButton label={`${t.run}: ${one.tool}`} sign="play" onClick={() => step(one.id, "run")} />
        )}
        {one.state === "scheduled" && (
          <IconButton label={`${t.pause}: ${one.tool}`} sign="pause" onClick={() => step(one.id, "pause")} />
        )}
        {one.state === "paused" && (
          <IconButton label={`${t.resume}: ${one.tool}`} sign="play" onClick={() => step(one.id, "resume")} />
        )}
      </span>
    </li>
  );
}

/** What state it is in, or what keeps it. */
export function Condition({ one }: { one: Schedule }) {
  const condition = conditionOf(one, now.value);
  return <StateChip state={condition === "blocked" ? "approval" : condition} />;
}

/** Until its time, as long as there is one ahead; since its time, when it should have begun. */
export function Left({ one }: { one: Schedule }) {
  const t = words();
  if (one.state !== "scheduled" || one.due === null) return null;
  const left = one.due - now.value / 1000;
  if (left > 0) return <>{t.inTime(duration(Math.ceil(left)))}</>;
  return <>{conditionOf(one, now.value) === "late" ? t.lateBy(duration(Math.floor(-left))) : t.overdue}</>;
}

/** Why it did not run, does not run yet, or did not end well. */
export function reason(one: Schedule): string {
  const t = words();
  const last = one.runs[one.runs.length - 1];
  const condition = conditionOf(one, now.value);
  if (condition === "late") return one.late_because ? lateBecause(one.late_because) : t.whyLate;
  if (condition === "blocked") return t.whyBlocked;
  if (condition === "expired") return t.whyExpired;
  if (condition === "interrupted") return last?.text || t.whyInterrupted;
  return condition === "failed" ? last?.text || t.whyFailed : "";
}

export function lateBecause(why: Late): string {
  const t = words();
  return { no_host: t.lateNoHost, busy: t.lateBusy, storage: t.lateStorage }[why];
}

function hrefOf(id: string): string {
  const query = new URLSearchParams(place.value.query);
  query.set("schedule", id);
  return `/schedule?${query}`;
}
