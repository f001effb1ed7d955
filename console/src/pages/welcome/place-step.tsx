/** The language of the console, and the time zone of the server. */
import { useSignal } from "@preact/signals";
import { api, type ApiError } from "../../lib/api";
import { now } from "../../lib/clock";
import { language, locale, setLanguage, type Language } from "../../lib/language";
import { showToast } from "../../lib/toast";
import { Button } from "../../ui/button";
import { TextField } from "../../ui/field";
import { Fault } from "../../ui/state";
import { StepFooter } from "./foot";
import { settingOf, type StepProps } from "./types";
import { words } from "./words";

const LANGUAGES: readonly [Language, string][] = [
  ["en", "English"],
  ["zh", "中文"],
];

export function PlaceStep({ settings, next, skip, back, onSaved }: StepProps & { onSaved: () => void }) {
  const t = words();
  const known = settingOf(settings, "time_zone")?.value;
  const was = typeof known === "string" ? known : "";
  const zone = useSignal(was || Intl.DateTimeFormat().resolvedOptions().timeZone);
  const fault = useSignal<ApiError | null>(null);
  const time = timeIn(zone.value);
  const save = async () => {
    if (!time) return;
    if (zone.value !== was) {
      const answer = await api<{ after_restart: string[] }>("/v1/settings", {
        method: "PATCH",
        body: { values: { time_zone: zone.value } },
      });
      if (answer.after_restart.includes("time_zone")) showToast(t.afterRestart, "plain");
      onSaved();
    }
    next();
  };
  return (
    <div class="stack">
      <fieldset class="welcome-languages">
        <legend>{t.language}</legend>
        {LANGUAGES.map(([id, name]) => (
          <label key={id} lang={id}>
            <input type="radio" name="language" checked={language.value === id} onChange={() => setLanguage(id)} />
            <span>{name}</span>
          </label>
        ))}
      </fieldset>
      <TextField
        label={t.zone}
        list="welcome-zones"
        value={zone.value}
        help={time ? t.zoneNow(time) : t.zoneHelp}
        problem={time ? undefined : t.badZone}
        onInput={(text) => (zone.value = text.trim())}
      />
      <datalist id="welcome-zones">
        {Intl.supportedValuesOf("timeZone").map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      {fault.value && <Fault title={t.saveFailed} error={fault.value} />}
      <StepFooter back={back} skip={skip}>
        <Button kind="primary" disabled={!time} onClick={save} onFault={(error) => (fault.value = error as ApiError)}>
          {t.next}
        </Button>
      </StepFooter>
    </div>
  );
}

/** The time in a zone now; empty when there is no such zone. */
function timeIn(zone: string): string {
  try {
    const parts = new Intl.DateTimeFormat(locale(), {
      timeZone: zone,
      weekday: "short",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
      timeZoneName: "longOffset",
    }).formatToParts(new Date(now.value));
    const of = (type: string) => parts.find((part) => part.type === type)?.value ?? "";
    return `${of("weekday")} ${of("hour")}:${of("minute")} ${of("timeZoneName")}`;
  } catch {
    return "";
  }
}
