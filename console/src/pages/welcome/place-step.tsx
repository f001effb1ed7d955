/** The language of the console, the time zone of the server, the folder of the tools and what they may do. */
import { useSignal } from "@preact/signals";
import { api, type ApiError } from "../../lib/api";
import { now } from "../../lib/clock";
import { draftOf, setDraft } from "../../lib/drafts";
import { language, locale, setLanguage, type Language } from "../../lib/language";
import { revealHidden } from "../../lib/hidden-characters";
import { Button, CopyButton } from "../../ui/button";
import { Code } from "../../ui/code";
import { TextField } from "../../ui/field";
import { Icon, type Sign } from "../../ui/icon";
import { Fault } from "../../ui/state";
import { valueOf } from "../providers/provider";
import { StepFooter } from "./foot";
import type { StepProps } from "./types";
import { words } from "./words";

const KEPT = "welcome.zone";
const LANGUAGES: readonly [Language, string][] = [
  ["en", "English"],
  ["zh", "中文"],
];

export function PlaceStep({ status, settings, back, end }: StepProps & { end: () => Promise<void> }) {
  const t = words();
  const stored = valueOf<string>(settings, "time_zone") ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zone = draftOf<string>(KEPT) ?? stored;
  const asks = valueOf<string>(settings, "approval_mode") !== "auto";
  const rules: [Sign, string][] = [
    ["file", t.mayRead],
    ["approvals", asks ? t.mayAsk : t.mayAuto],
    ["tools", status.confinement === "none" ? t.mayPlugins : t.mayPluginsConfined],
  ];
  const fault = useSignal<ApiError | null>(null);
  const time = timeIn(zone);
  const save = async () => {
    if (!time) return;
    if (zone !== status.time_zone) {
      await api("/v1/settings", { method: "PATCH", body: { values: { time_zone: zone } } });
    }
    setDraft(KEPT, undefined);
    await end();
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
        value={zone}
        help={time ? t.zoneNow(time) : t.zoneHelp}
        problem={time ? undefined : t.badZone}
        onInput={(text) => setDraft(KEPT, text.trim() === stored ? undefined : text.trim())}
      />
      <datalist id="welcome-zones">
        {Intl.supportedValuesOf("timeZone").map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      <div class="field">
        <strong>{t.folder}</strong>
        <div class="welcome-folder">
          <Icon sign="folder" />
          <span class="mono grow" data-given>
            {revealHidden(status.project)}
          </span>
          <CopyButton text={status.project} />
        </div>
      </div>
      <ul class="welcome-rules">
        {rules.map(([sign, text]) => (
          <li key={text}>
            <Icon sign={sign} size={17} />
            <span>{text}</span>
          </li>
        ))}
      </ul>
      <Code text={`toolyard serve --project FOLDER${status.home_option}`} label={t.another} />
      {fault.value && <Fault title={t.saveFailed} error={fault.value} />}
      <StepFooter back={back}>
        <Button kind="primary" disabled={!time} onClick={save} onFault={(error) => (fault.value = error as ApiError)}>
          {t.done}
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
