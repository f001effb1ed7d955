/** The next seven days at a glance. A day that is pressed shows its runs only. */
import { now } from "../../lib/clock";
import { setQuery, queryParam } from "../../lib/router";
import { revealHidden } from "../../lib/hidden-characters";
import type { UpcomingRun } from "./use-upcoming";
import { dayOf, daysFrom, timeOf, weekday } from "./when";
import { scheduleWords as words } from "./words";

const DAYS = 7;
const SHOWN = 3;

export function Strip({ coming, zone }: { coming: readonly UpcomingRun[]; zone: string | undefined }) {
  const t = words();
  const days = daysFrom(dayOf(now.value / 1000, zone), DAYS);
  const chosen = queryParam("day");
  return (
    <div class="sch-strip" role="group" aria-label={t.strip}>
      {days.map((day, at) => {
        const runs = coming.filter((one) => dayOf(one.at, zone) === day);
        return (
          <button
            key={day}
            type="button"
            class={`sch-day${at === 0 ? " today" : ""}${runs.length ? "" : " free"}`}
            aria-pressed={chosen === day}
            aria-label={`${weekday(day)} ${day}, ${t.runsOn(runs.length)}`}
            onClick={() => setQuery({ day: chosen === day ? null : day, tab: null })}
          >
            <span class="sch-weekday">{at === 0 ? t.today : <time dateTime={day}>{weekday(day)}</time>}</span>
            <span class="sch-date tabular">{Number(day.slice(8))}</span>
            <span class="sch-runs">
              {runs.slice(0, SHOWN).map((one, n) => (
                <span key={n} class="sch-run cut" data-given title={`${timeOf(one.at, zone)} ${one.schedule.tool}`}>
                  <b class="tabular">{timeOf(one.at, zone)}</b> {revealHidden(one.schedule.tool)}
                </span>
              ))}
              {runs.length > SHOWN && <span class="faint">{t.moreRuns(runs.length - SHOWN)}</span>}
            </span>
            {runs.length > 0 && (
              <span class="sch-dots" aria-hidden="true">
                {runs.slice(0, 4).map((_, n) => (
                  <i key={n} />
                ))}
              </span>
            )}
          </button>
        );
      })}
    </div>
  );
}
