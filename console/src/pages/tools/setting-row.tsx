/** One setting of a plugin. */
import type { PluginSettingRow } from "toolyard-client";
import { formatRelative } from "../../lib/clock";
import { revealHidden } from "../../lib/hidden-characters";
import { language } from "../../lib/language";
import { Button } from "../../ui/button";
import { Chip, type Tone } from "../../ui/chip";
import { Field, Switch } from "../../ui/field";
import { pluginWords } from "./words-plugin";

const TONES: Record<PluginSettingRow["source"], Tone> = {
  plugin: "info",
  host: "info",
  default: "plain",
  missing: "bad",
};

export function SettingRow({
  setting,
  change,
  problem,
  onChange,
}: {
  setting: PluginSettingRow;
  change: string | null | undefined;
  problem: string;
  onChange: (value: string | null | undefined) => void;
}) {
  const t = pluginWords();
  const source = { plugin: t.fromPlugin, host: t.fromHost, default: t.fromDefault, missing: t.missing }[setting.source];
  const described = setting.translations[language.value] || setting.description;
  const help = described ? revealHidden(described) : undefined;
  return (
    <div class="tools-setting">
      {/^bool/.test(setting.type) ? (
        <BooleanSelect setting={setting} change={change} help={help} onChange={onChange} />
      ) : (
        <Field
          label={<span data-given>{revealHidden(setting.key)}</span>}
          help={help && <span data-given>{help}</span>}
          problem={problem}
          required={setting.required}
        >
          {(ids) => (
            <input
              {...ids}
              {...(setting.secret
                ? ({ type: "password", autocomplete: "new-password" } as const)
                : ({ type: "text", autocomplete: "off" } as const))}
              spellcheck={false}
              inputMode={/^(number|integer|float|int)$/.test(setting.type) ? "decimal" : undefined}
              placeholder={placeholder(setting, change)}
              value={change ?? (change === null || setting.secret ? "" : (setting.value ?? ""))}
              onInput={(event) => {
                const typed = event.currentTarget.value;
                onChange(typed === (setting.secret ? "" : (setting.value ?? "")) ? undefined : typed);
              }}
            />
          )}
        </Field>
      )}
      <div class="tools-setting-foot">
        {(setting.source !== "missing" || setting.required) && (
          <Chip tone={TONES[setting.source]} title={t.source}>
            {source}
          </Chip>
        )}
        <span class="faint mono" data-given>
          {setting.type}
        </span>
        {change === null && <span class="faint">{t.removed}</span>}
        {change !== undefined ? (
          <Button kind="quiet" onClick={() => onChange(undefined)}>
            {t.undo}
          </Button>
        ) : (
          setting.source === "plugin" && (
            <Button kind="quiet" onClick={() => onChange(null)}>
              {t.remove}
            </Button>
          )
        )}
      </div>
    </div>
  );
}

function BooleanSelect({
  setting,
  change,
  help,
  onChange,
}: {
  setting: PluginSettingRow;
  change: string | null | undefined;
  help: string | undefined;
  onChange: (value: string | undefined) => void;
}) {
  const was = /^(true|1|yes|on)$/i.test(setting.value ?? "");
  const on = change === undefined || change === null ? was : change === "true";
  return (
    <div class="field">
      <Switch
        label={<span data-given>{revealHidden(setting.key)}</span>}
        on={on}
        onSwitch={(next) => onChange(next === was && setting.set ? undefined : String(next))}
        help={help}
      />
    </div>
  );
}

function placeholder(setting: PluginSettingRow, change: string | null | undefined): string {
  const t = pluginWords();
  if (change === null) return t.removed;
  if (!setting.secret) return setting.set ? "" : t.notSet;
  return setting.set ? (setting.changed ? t.setAt(formatRelative(setting.changed)) : t.isSet) : t.notSet;
}
