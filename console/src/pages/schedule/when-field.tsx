/** The time of a schedule: written as people say it, picked, or as a cron expression. What it means is told
 * meanwhile. */
import { formatDuration, now } from "../../lib/clock";
import { messageIn, messageText, type ServerMessage } from "../../lib/messages";
import { Field } from "../../ui/field";
import { Notice } from "../../ui/state";
import { Picker } from "./picker";
import type { TimedPreview } from "./use-preview";
import { quickTimes, formatIso } from "./when";
import { scheduleWords as words } from "./words";

export interface When {
  kind: "once" | "cron";
  at: string;
  cron: string;
}

export function WhenField({
  when,
  onWhen,
  preview,
  looking,
  zone,
  offset,
}: {
  when: When;
  onWhen: (when: When) => void;
  preview: TimedPreview | null;
  looking: boolean;
  zone: string;
  offset: string;
}) {
  const t = words();
  const problem = preview?.problem
    ? inWords(messageIn(preview, "problem"), {
        "schedule.not_future_now": t.isPast,
        "schedule.invalid_time": t.notTime,
        "schedule.not_cron_expression": t.notCron,
        "schedule.never_comes": t.never,
      })
    : "";
  const first = formatIso(preview?.times[0] ?? "");
  const isOnce = when.kind === "once";
  const put = (text: string) => onWhen(isOnce ? { ...when, at: text } : { ...when, cron: text });
  const ready: [string, string][] = isOnce
    ? quickTimes().map((phrase, at) => [phrase, [t.inMinute, t.inHour, t.tomorrow][at]!])
    : [
        ["0 * * * *", t.everyHour],
        ["0 8 * * *", t.everyDay],
        ["0 9 * * 1-5", t.workdays],
        ["0 9 * * 1", t.everyWeek],
        ["0 8 1 * *", t.everyMonth],
      ];
  return (
    <fieldset class="sch-field">
      <legend>{t.when}</legend>
      <div class="sch-kinds">
        {(["once", "cron"] as const).map((kind) => (
          <label key={kind}>
            <input
              type="radio"
              name="sch-kind"
              checked={when.kind === kind}
              onChange={() => onWhen({ ...when, kind })}
            />{" "}
            {kind === "once" ? t.kindOnce : t.kindCron}
          </label>
        ))}
      </div>
      <Field label={isOnce ? t.at : t.cron} required help={isOnce ? t.atHelp : t.cronHelp} problem={problem}>
        {(ids) => (
          <div class="sch-time">
            <input
              {...ids}
              type="text"
              key={when.kind}
              autocomplete="off"
              placeholder={isOnce ? "2027-03-05-14:00" : "0 8 * * *"}
              value={isOnce ? when.at : when.cron}
              onInput={(event) => put(event.currentTarget.value)}
            />
            {isOnce && <Picker at={preview?.times[0] ?? ""} onPick={put} />}
            {zone && (
              <span class="sch-zone" title={t.zone}>
                <code>{zone}</code> <time class="tabular">{offset}</time>
              </span>
            )}
          </div>
        )}
      </Field>
      <div class="sch-presets" role="group" aria-label={isOnce ? t.quick : t.presets}>
        {ready.map(([text, name]) => (
          <button
            key={text}
            type="button"
            class="button"
            aria-pressed={(isOnce ? when.at : when.cron) === text}
            onClick={() => put(text)}
          >
            {name}
          </button>
        ))}
      </div>
      <div role="status" class="sch-preview">
        {looking && <span class="faint">{t.checkingTime}</span>}
        {preview && !problem && preview.times.length > 0 && <PreviewText preview={preview} />}
      </div>
      {preview?.note && (
        <Notice tone="warn">
          {inWords(messageIn(preview, "note"), {
            "schedule.clocks_skip": t.skips(first),
            "schedule.clocks_repeat": t.twice(first),
          })}
        </Notice>
      )}
    </fieldset>
  );
}

function PreviewText({ preview }: { preview: TimedPreview }) {
  const t = words();
  const [first, ...rest] = preview.times;
  const left = (preview.in_seconds ?? 0) - (now.value - preview.came) / 1000;
  return (
    <>
      <strong class="tabular">{t.inTime(formatDuration(Math.ceil(Math.max(0, left))))}</strong>
      {t.comma}
      <time class="tabular">{formatIso(first!)}</time>
      {rest.length > 0 && (
        <p class="faint tabular">
          {t.then} <time>{rest.map(formatIso).join("; ")}</time>
        </p>
      )}
    </>
  );
}

/** A message of the server in the words of this page, by its code; without the hint for models, if it has one. */
function inWords(message: ServerMessage, known: Readonly<Record<string, string>>): string {
  const first = message.params?.message;
  const code = typeof first === "object" ? first.code : message.code;
  return known[code ?? ""] ?? messageText(message);
}
