/** One schedule in the list. */
import { absolute, duration, now } from "../../lib/clock";
import { place } from "../../lib/router";
import { visible } from "../../lib/visible";
import { IconButton } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { Ago } from "../../ui/time";
import { step } from "./do";
import { summary, type Schedule } from "./types";
import { shown } from "./when";
import { scheduleWords as words } from "./words";

export function Row({ one }: { one: Schedule }) {
  const t = words();
  const last = one.runs[one.runs.length - 1];
  const why = reason(one);
  return (
    <li class={`sch-row${one.state === "paused" ? " paused" : ""}`}>
      <a class="sch-open" data-row href={hrefOf(one.id)}>
        <span class="sch-when">
          <time class="tabular" dateTime={one.scheduled_for} title={one.due ? absolute(one.due) : undefined}>{shown(one.scheduled_for)}</time>
          <span class="faint tabular"><Left one={one} /></span>
        </span>
        <span class="sch-what">
          <span class="cut" title={one.cron ? `${one.tool} ${t.every(one.cron)}` : one.tool} data-given><strong class="mono">{visible(one.tool)}</strong>{one.cron && <span class="faint mono"> {t.every(one.cron)}</span>}</span>
          <span class="faint cut" data-given title={visible(why || summary(one.arguments))}>{visible(why || summary(one.arguments))}</span>
        </span>
        <span class="sch-state"><StateChip state={one.state} />{last && one.state === "scheduled" && <span class="faint">{t.last} <StateChip state={last.state} /> <Ago at={last.at} /></span>}</span>
      </a>
      <span class="sch-side">
        {(one.state === "scheduled" || one.state === "expired") && <IconButton label={`${t.run}: ${one.tool}`} sign="play" onClick={() => step(one.id, "run")} />}
        {one.state === "scheduled" && <IconButton label={`${t.pause}: ${one.tool}`} sign="pause" onClick={() => step(one.id, "pause")} />}
        {one.state === "paused" && <IconButton label={`${t.resume}: ${one.tool}`} sign="play" onClick={() => step(one.id, "resume")} />}
      </span>
    </li>
  );
}

/** Until its time, as long as there is one ahead. */
export function Left({ one }: { one: Schedule }) {
  const t = words();
  if (one.state !== "scheduled" || one.due === null) return null;
  const left = one.due - now.value / 1000;
  return <>{left > 0 ? t.inTime(duration(Math.ceil(left))) : t.overdue}</>;
}

/** Why it did not run, or did not end well. */
export function reason(one: Schedule): string {
  const t = words();
  if (one.state === "expired") return t.whyExpired;
  const last = one.runs[one.runs.length - 1];
  if (one.state === "interrupted") return last?.text || t.whyInterrupted;
  return one.state === "failed" ? last?.text || t.whyFailed : "";
}

function hrefOf(id: string): string {
  const query = new URLSearchParams(place.value.query);
  query.set("schedule", id);
  return `/schedule?${query}`;
}
