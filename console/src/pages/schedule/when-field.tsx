/** The time of a schedule, written, picked or as a cron expression; what it means is told while it is written. */
import { duration } from "../../lib/clock";
import { Field, TextField } from "../../ui/field";
import { Notice } from "../../ui/state";
import type { Preview } from "./types";
import { shown } from "./when";
import { scheduleWords as words } from "./words";

export interface When { kind: "once" | "cron"; at: string; cron: string }

export function WhenField({ when, onWhen, preview, looking }: { when: When; onWhen: (when: When) => void; preview: Preview | null; looking: boolean }) {
  const t = words();
  const problem = preview?.problem ? inWords(preview.problem, [[/not in the future/, t.isPast], [/not a time/, t.notTime], [/not a cron/, t.notCron], [/never comes/, t.never]]) : "";
  const first = shown(preview?.times[0] ?? "");
  const picked = /^(\d{4})-(\d{2})-(\d{2})[-T ](\d{2}):(\d{2})/.exec(when.at);
  const presets: [string, string][] = [["0 * * * *", t.everyHour], ["0 8 * * *", t.everyDay], ["0 9 * * 1-5", t.workdays], ["0 9 * * 1", t.everyWeek], ["0 8 1 * *", t.everyMonth]];
  return (
    <fieldset class="sch-field">
      <legend>{t.when}</legend>
      <div class="sch-kinds">
        {(["once", "cron"] as const).map((kind) => <label key={kind}><input type="radio" name="sch-kind" checked={when.kind === kind} onChange={() => onWhen({ ...when, kind })} /> {kind === "once" ? t.kindOnce : t.kindCron}</label>)}
      </div>
      {when.kind === "once" ? (
        <div class="sch-two">
          <TextField label={t.at} required help={t.atHelp} problem={problem} placeholder="2027-03-05-14:00" autocomplete="off" value={when.at} onInput={(at) => onWhen({ ...when, at })} />
          <Field label={t.pick}>{(ids) => <input {...ids} type="datetime-local" value={picked ? `${picked[1]}-${picked[2]}-${picked[3]}T${picked[4]}:${picked[5]}` : ""} onInput={(event) => { if (event.currentTarget.value) onWhen({ ...when, at: event.currentTarget.value.replace("T", "-").slice(0, 16) }); }} />}</Field>
        </div>
      ) : (
        <>
          <TextField label={t.cron} required help={t.cronHelp} problem={problem} placeholder="0 8 * * *" autocomplete="off" value={when.cron} onInput={(cron) => onWhen({ ...when, cron })} />
          <div class="sch-presets" role="group" aria-label={t.presets}>{presets.map(([cron, name]) => <button key={cron} type="button" class="button" aria-pressed={when.cron === cron} onClick={() => onWhen({ ...when, cron })}>{name}</button>)}</div>
        </>
      )}
      <div role="status" class="sch-told">
        {looking && <span class="faint">{t.looking}</span>}
        {preview && !problem && preview.times.length > 0 && <Told preview={preview} />}
      </div>
      {preview?.note && <Notice tone="warn">{inWords(preview.note, [[/skip/, t.skips(first)], [/twice/, t.twice(first)]])}</Notice>}
    </fieldset>
  );
}

function Told({ preview }: { preview: Preview }) {
  const t = words();
  const [first, ...rest] = preview.times;
  return (
    <>
      <strong>{t.inTime(duration(Math.ceil(preview.in_seconds ?? 0)))}</strong>, <span class="tabular">{shown(first!)}</span> <span class="faint">{preview.zone}</span>
      {rest.length > 0 && <p class="faint tabular">{t.then} {rest.map(shown).join("; ")}</p>}
    </>
  );
}

/** What the server says, in the words of this page; its own where it says something else. */
function inWords(said: string, known: readonly (readonly [RegExp, string])[]): string {
  return known.find(([sign]) => sign.test(said))?.[1] ?? said;
}
