/** The settings of a plugin: each with its type and where its value comes from. A secret is written, never read. */
import { useSignal } from "@preact/signals";
import type { PluginConfigResult, PluginDetail, PluginSettingRow } from "toolyard-client";
import { api, type ApiError } from "../../lib/api";
import { Button } from "../../ui/button";
import { Empty, Fault, Notice } from "../../ui/state";
import { messageIn } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import { pluginPath } from "./plugin-actions";
import { SettingRow } from "./setting-row";
import { pluginStateWord } from "./words";
import { pluginWords } from "./words-plugin";

/** The changes to be saved: a text, or null to remove the key. */
export type Changes = Readonly<Record<string, string | null>>;

export function ConfigTab({
  plugin,
  put,
  reload,
}: {
  plugin: PluginDetail;
  put: (plugin: PluginDetail) => void;
  reload: () => void;
}) {
  const t = pluginWords();
  const changes = useSignal<Changes>({});
  const fault = useSignal<ApiError | null>(null);
  const saved = useSignal<{ state: string; reason: string } | null>(null);
  const count = Object.keys(changes.value).length;
  if (!plugin.config.length) return <Empty sign="settings" title={t.noConfig} />;
  const change = (key: string, value: string | null | undefined) => {
    const next = { ...changes.value };
    if (value === undefined) delete next[key];
    else next[key] = value;
    changes.value = next;
    saved.value = null;
  };
  const bad = plugin.config.filter((one) => isBad(one, changes.value[one.key]));
  const save = async () => {
    fault.value = null;
    const values = Object.fromEntries(
      Object.entries(changes.value).map(([key, value]) => [
        key,
        parseSetting(
          plugin.config.find((one) => one.key === key),
          value,
        ),
      ]),
    );
    const answer = await api<PluginConfigResult>(pluginPath(plugin, "/config"), {
      method: "PUT",
      body: { values },
    });
    changes.value = {};
    saved.value = answer;
    put({ ...plugin, state: answer.state as PluginDetail["state"], reason: answer.reason, config: answer.config });
    reload();
  };
  return (
    <form class="stack" onSubmit={(event) => event.preventDefault()} autocomplete="off">
      <div class="card tools-settings">
        {plugin.config.map((one) => (
          <SettingRow
            key={one.key}
            setting={one}
            change={changes.value[one.key]}
            problem={bad.includes(one) ? t.badNumber : ""}
            onChange={(value) => change(one.key, value)}
          />
        ))}
      </div>
      {fault.value && <Fault error={fault.value} />}
      {saved.value && (
        <Notice tone="good">
          {t.saved(t.nextCall)} {t.newState(pluginStateWord(saved.value.state))}
          {saved.value.reason && (
            <div class="quiet">
              <MessageText message={messageIn(saved.value, "reason")} />
            </div>
          )}
        </Notice>
      )}
      <div class={`tools-save${count ? " dirty" : ""}`}>
        <Button
          kind="primary"
          disabled={!count || bad.length > 0}
          onClick={save}
          onFault={(error) => (fault.value = error as ApiError)}
        >
          {t.save}
        </Button>
        {count > 0 && (
          <Button kind="quiet" onClick={() => (changes.value = {})}>
            {t.discard}
          </Button>
        )}
        <span class="faint">{count ? t.unsaved(count) : t.fileHint}</span>
      </div>
    </form>
  );
}

function isBad(setting: PluginSettingRow, change: string | null | undefined): boolean {
  return (
    typeof change === "string" &&
    /^(number|integer|float|int)$/.test(setting.type) &&
    (change.trim() === "" || !Number.isFinite(Number(change)))
  );
}

function parseSetting(setting: PluginSettingRow | undefined, value: string | null): string | number | boolean | null {
  if (value === null || !setting) return value;
  if (/^bool/.test(setting.type)) return value === "true";
  return /^(number|integer|float|int)$/.test(setting.type) ? Number(value) : value;
}
