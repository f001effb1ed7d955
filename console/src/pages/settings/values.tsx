/** Every setting as a field of its own kind. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { SettingRow, SettingsChangeResult } from "toolyard-client";
import { api, type ApiError } from "../../lib/api";
import { formatBytes } from "../../lib/clock";
import { draftOf, setDraft } from "../../lib/drafts";
import { language, pickText } from "../../lib/language";
import { useLinkedField } from "../../lib/linked-field";
import { useResource } from "../../lib/resource";
import { setQuery, queryParam } from "../../lib/router";
import { toText } from "../../lib/text";
import { showToast } from "../../lib/toast";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Search, Select, Switch, TextArea, TextField } from "../../ui/field";
import { Empty, Fault, Loading, Notice } from "../../ui/state";
import type { ServerMessage } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import { choiceName, EXAMPLES } from "./examples";
import { toDraft, toValue } from "./setting-text";
import type { TabProps } from "./types";
import { words } from "./words";

/** The group with a page of its own. */
const PROVIDERS = "upstream";
/** The file and the line of a problem: for a field only what is wrong with it counts. */
const PLACE = /^.*?, line \d+, column \d+: /s;

/** The problem alone: the page shows which setting it is about. */
function withoutPlace(message: ServerMessage): ServerMessage {
  const problem = message.params?.problem;
  return typeof problem === "object" ? problem : { ...message, text: message.text.replace(PLACE, "") };
}

export function Values({ all }: TabProps) {
  const t = words();
  if (all.state === "fault" && !all.value) return <Fault error={all.error} retry={all.reload} />;
  if (!all.value) return <Loading rows={8} />;
  const search = queryParam("find").toLowerCase();
  const matching = all.value.settings.filter(
    (one) =>
      !search ||
      `${one.name} ${pickText(one.title, one.title_zh)} ${pickText(one.description, one.description_zh)}`
        .toLowerCase()
        .includes(search),
  );
  const groups = all.value.groups.filter((group) => matching.some((one) => one.group === group.id));
  return (
    <>
      <div class="row">
        <Search label={t.search} value={queryParam("find")} onInput={(find) => setQuery({ find })} />
        <span class="faint">{t.unmarked}</span>
      </div>
      {!matching.length && <Empty sign="search" title={t.none} />}
      {groups.map(({ id: group, title, title_zh }) => (
        <section key={group} class="card settings-group" aria-label={pickText(title, title_zh)}>
          <h2>{pickText(title, title_zh)}</h2>
          {group === "history" && <UsedSpace />}
          {group === PROVIDERS ? (
            <div class="row spread">
              <span class="quiet">{t.providersText}</span>
              <a class="button" href="/providers">
                {t.openProviders}
              </a>
            </div>
          ) : (
            matching
              .filter((one) => one.group === group)
              .map((one) => <SettingField key={one.name} setting={one} onSaved={all.reload} />)
          )}
        </section>
      ))}
    </>
  );
}

/** The current size of the history. */
function UsedSpace() {
  const t = words();
  const status = useResource<{ database: { bytes: number | null } }>("/v1/status");
  const used = status.value?.database.bytes;
  return used ? <p class="faint">{t.usedNow(formatBytes(used))}</p> : null;
}

function SettingField({ setting, onSaved }: { setting: SettingRow; onSaved: () => void }) {
  const t = words();
  const kept = `settings.general.${setting.name}`;
  const draft = draftOf<string>(kept);
  const fault = useSignal<ApiError | null>(null);
  const fixed = setting.source === "env";
  const save = async (next: unknown) => {
    fault.value = null;
    const response = await api<SettingsChangeResult>("/v1/settings", {
      method: "PATCH",
      body: { values: { [setting.name]: next } },
    });
    setDraft(kept, undefined);
    showToast(response.after_restart.length ? t.savedLater : t.saved);
    onSaved();
  };
  const where = { default: t.fromDefault, file: t.fromFile, env: t.fromEnv, "host.env": t.fromHost }[setting.source];
  const stored = setting.secret ? "" : toDraft(setting.kind, setting.value);
  return (
    <div class="settings-one" {...useLinkedField(setting.name)}>
      <div class="grow stack">
        <Input
          setting={setting}
          text={draft ?? stored}
          fixed={fixed}
          problem={fault.value && <MessageText message={withoutPlace(fault.value.serverMessage)} />}
          onInput={(text) => setDraft(kept, text === stored ? undefined : text)}
        />
        <div class="row faint settings-notes">
          {setting.source !== "default" && <Chip tone="info">{t.source(where)}</Chip>}
          {!setting.holds ? <Chip tone="warn">{t.waitsForRestart}</Chip> : !setting.live && <span>{t.restart}</span>}
          {setting.source !== "default" && !setting.secret && <span>{t.default(formatDefault(setting))}</span>}
          {EXAMPLES[setting.name] && (
            <span>
              {t.example} <code data-given>{EXAMPLES[setting.name]}</code>
            </span>
          )}
          <a
            href={`/docs/configuration?lang=${language.value === "zh" ? "zh" : "en"}#${setting.name}`}
            target="_blank"
            rel="noopener"
            aria-label={t.docsOf(pickText(setting.title, setting.title_zh))}
          >
            {t.docs}
          </a>
        </div>
        {fixed && <Notice>{t.setInEnvironment(setting.variable)}</Notice>}
      </div>
      {!fixed && draft !== undefined && (
        <div class="row">
          <Button
            kind="primary"
            onClick={() => save(toValue(setting.kind, draft))}
            onFault={(error) => (fault.value = error as ApiError)}
          >
            {t.save}
          </Button>
          <Button
            kind="quiet"
            onClick={() => {
              setDraft(kept, undefined);
              fault.value = null;
            }}
          >
            {t.cancel}
          </Button>
        </div>
      )}
      {!fixed && draft === undefined && setting.source === "file" && (
        <Button kind="quiet" sign="reset" onClick={() => save(null)}>
          {t.reset}
        </Button>
      )}
    </div>
  );
}

function Input({
  setting,
  text,
  fixed,
  problem,
  onInput,
}: {
  setting: SettingRow;
  text: string;
  fixed: boolean;
  problem?: ComponentChildren;
  onInput: (text: string) => void;
}) {
  const t = words();
  const help = pickText(setting.description, setting.description_zh);
  const label = (
    <>
      {pickText(setting.title, setting.title_zh)} <code class="settings-name">{setting.name}</code>
    </>
  );
  const common = { label, help, problem, onInput, disabled: fixed };
  if (setting.secret)
    return (
      <TextField
        {...common}
        type="password"
        autocomplete="new-password"
        value={text}
        placeholder={setting.value ? t.secretSet : t.secretEmpty}
      />
    );
  switch (setting.kind) {
    case "bool":
      return (
        <Switch
          label={label}
          help={help}
          on={text === "true"}
          disabled={fixed}
          onSwitch={(on) => onInput(String(on))}
        />
      );
    case "choice":
      return (
        <Select
          {...common}
          value={text}
          options={(setting.choices ?? []).map((one) => ({ value: one, name: choiceName(setting.name, one) }))}
        />
      );
    case "list":
    case "table":
      return (
        <TextArea
          {...common}
          mono
          rows={Math.max(2, Math.min(6, text.split("\n").length + 1))}
          placeholder={setting.kind === "list" ? t.lines : t.tableLines}
          value={text}
        />
      );
    default:
      return <TextField {...common} type={setting.kind === "number" ? "number" : "text"} value={text} />;
  }
}

function formatDefault({ name, kind, default: value }: SettingRow): string {
  if (typeof value === "boolean") return value ? words().yes : words().no;
  if (kind === "choice") return choiceName(name, toText(value));
  const text = toDraft(kind, value).replaceAll("\n", ", ");
  return text || words().notSet;
}
