/** Every setting as a field of its own kind. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { api, type ApiError } from "../../lib/api";
import { formatBytes } from "../../lib/clock";
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
import { settingDescription, groupName, GROUPS, settingName } from "./names";
import { words } from "./words";

export interface Setting {
  name: string;
  value: unknown;
  default: unknown;
  source: "default" | "file" | "env" | "host.env";
  secret: boolean;
  live: boolean;
  description: string;
  kind: "text" | "number" | "bool" | "list" | "choice" | "table";
  choices: string[] | null;
  group: string;
}
interface All {
  file: string;
  text: string;
  settings: Setting[];
}
interface Saved {
  after_restart: string[];
}
/** The file and the line of a problem: for a field only what is wrong with it counts. */
const PLACE = /^.*?, line \d+, column \d+: /s;

/** The problem alone: the page shows which setting it is about. */
function withoutPlace(message: ServerMessage): ServerMessage {
  const problem = message.params?.problem;
  return typeof problem === "object" ? problem : { ...message, text: message.text.replace(PLACE, "") };
}

export function Values() {
  const t = words();
  const all = useResource<All>("/v1/settings");
  if (all.state === "fault" && !all.value) return <Fault error={all.error} retry={all.reload} />;
  if (!all.value) return <Loading rows={8} />;
  const search = queryParam("find").toLowerCase();
  const matching = all.value.settings.filter(
    (one) =>
      !search ||
      `${one.name} ${settingName(one.name)} ${settingDescription(one.name, one.description)}`
        .toLowerCase()
        .includes(search),
  );
  const groups = [...new Set([...GROUPS, ...matching.map((one) => one.group)])].filter((group) =>
    matching.some((one) => one.group === group),
  );
  return (
    <>
      <div class="row">
        <Search label={t.search} value={queryParam("find")} onInput={(find) => setQuery({ find })} />
        <span class="faint">{t.unmarked}</span>
      </div>
      {!matching.length && <Empty sign="search" title={t.none} />}
      {groups.map((group) => (
        <section key={group} class="card settings-group" aria-label={groupName(group)}>
          <h2>{groupName(group)}</h2>
          {group === "history" && <UsedSpace />}
          {matching
            .filter((one) => one.group === group)
            .map((one) => (
              <SettingRow key={one.name} setting={one} onSaved={all.reload} />
            ))}
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

function SettingRow({ setting, onSaved }: { setting: Setting; onSaved: () => void }) {
  const t = words();
  const draft = useSignal<unknown>(undefined);
  const fault = useSignal<ApiError | null>(null);
  const value = draft.value === undefined ? setting.value : draft.value;
  const fixed = setting.source === "env";
  const save = async (next: unknown) => {
    fault.value = null;
    const response = await api<Saved>("/v1/settings", {
      method: "PATCH",
      body: { values: { [setting.name]: next } },
    });
    draft.value = undefined;
    showToast(response.after_restart.length ? t.savedLater : t.saved);
    onSaved();
  };
  const where = { default: t.fromDefault, file: t.fromFile, env: t.fromEnv, "host.env": t.fromHost }[setting.source];
  return (
    <div class="settings-one" {...useLinkedField(setting.name)}>
      <div class="grow stack">
        <Input
          setting={setting}
          value={value}
          fixed={fixed}
          problem={fault.value && <MessageText message={withoutPlace(fault.value.serverMessage)} />}
          onInput={(next) => (draft.value = next)}
        />
        <div class="row faint">
          {setting.source !== "default" && <Chip tone="info">{t.source(where)}</Chip>}
          {!setting.live && <span>{t.restart}</span>}
          {setting.source !== "default" && !setting.secret && <span>{t.default(formatDefault(setting.default))}</span>}
        </div>
        {fixed && <Notice>{t.setInEnvironment}</Notice>}
      </div>
      {!fixed && draft.value !== undefined && (
        <div class="row">
          <Button
            kind="primary"
            onClick={() => save(draft.value)}
            onFault={(error) => (fault.value = error as ApiError)}
          >
            {t.save}
          </Button>
          <Button
            kind="quiet"
            onClick={() => {
              draft.value = undefined;
              fault.value = null;
            }}
          >
            {t.cancel}
          </Button>
        </div>
      )}
      {!fixed && draft.value === undefined && setting.source === "file" && (
        <Button kind="quiet" sign="undo" onClick={() => save(null)}>
          {t.reset}
        </Button>
      )}
    </div>
  );
}

function Input({
  setting,
  value,
  fixed,
  problem,
  onInput,
}: {
  setting: Setting;
  value: unknown;
  fixed: boolean;
  problem?: ComponentChildren;
  onInput: (value: unknown) => void;
}) {
  const t = words();
  const help = settingDescription(setting.name, setting.description);
  const label = (
    <>
      {settingName(setting.name)} <code class="settings-name">{setting.name}</code>
    </>
  );
  const common = { label, help, problem };
  if (setting.secret && setting.kind !== "table")
    return (
      <TextField
        {...common}
        type="password"
        autocomplete="new-password"
        disabled={fixed}
        value={typeof value === "string" && value !== setting.value ? value : ""}
        placeholder={setting.value ? t.secretSet : t.secretEmpty}
        onInput={onInput}
      />
    );
  switch (setting.kind) {
    case "bool":
      return <Switch label={label} help={help} on={value === true} disabled={fixed} onSwitch={onInput} />;
    case "choice":
      return (
        <Select
          {...common}
          value={toText(value)}
          onInput={onInput}
          options={(setting.choices ?? []).map((one) => ({ value: one, name: one, given: true }))}
        />
      );
    case "number":
      return (
        <TextField
          {...common}
          type="number"
          disabled={fixed}
          value={toText(value)}
          onInput={(text) => onInput(text === "" ? null : Number(text))}
        />
      );
    case "list":
      return (
        <TextArea
          {...common}
          mono
          rows={Math.max(2, Math.min(6, Array.isArray(value) ? value.length + 1 : 2))}
          placeholder={t.lines}
          value={Array.isArray(value) ? value.join("\n") : toText(value)}
          onInput={(text) =>
            onInput(
              text
                .split("\n")
                .map((line) => line.trim())
                .filter(Boolean),
            )
          }
        />
      );
    case "table":
      return (
        <div class="field">
          <strong>{label}</strong>
          <p class="faint">{help}</p>
          {!setting.secret && value && Object.keys(value).length ? (
            <pre class="settings-table">{JSON.stringify(value, null, 2)}</pre>
          ) : null}
          <a href="/settings?tab=raw">{t.inFile}</a>
        </div>
      );
    default:
      return <TextField {...common} disabled={fixed} value={toText(value)} onInput={onInput} />;
  }
}

function formatDefault(value: unknown): string {
  if (typeof value === "boolean") return value ? words().yes : words().no;
  const text = Array.isArray(value) ? value.join(", ") : toText(value);
  return text && text !== "{}" ? text : "–";
}
