/** The actions on a plugin, from its card and from its page. */
import { signal } from "@preact/signals";
import type { PluginRow } from "toolyard-client";
import { api, withQuery } from "../../lib/api";
import { copyText } from "../../lib/copy";
import { showToast } from "../../lib/toast";
import { revealHidden } from "../../lib/hidden-characters";
import type { Choice } from "./menu";
import { titleOf } from "./translation";
import { words } from "./words";
import { pluginWords } from "./words-plugin";

/** The address of a plugin; its folder tells it apart from others of the same name. */
export function pluginPath(plugin: PluginRow, step = ""): string {
  return withQuery(`${pluginBase(plugin)}${step}`, { folder: plugin.folder });
}

/** Its address without the folder. */
export const pluginBase = (plugin: PluginRow) => `/v1/plugins/${encodeURIComponent(plugin.name)}`;

/** The plugin that a person is about to remove. */
export const removing = signal<{ plugin: PluginRow; after: () => void } | null>(null);

export async function enablePlugin(plugin: PluginRow, after: () => void): Promise<void> {
  await api(pluginPath(plugin, "/enable"), { method: "POST", body: {} });
  showToast(words().enabled(revealHidden(titleOf(plugin))));
  after();
}

export function actionsOf(plugin: PluginRow, logs: string, after: () => void): Choice[] {
  const t = words();
  const name = revealHidden(titleOf(plugin));
  const tell = async (step: string, message: string) => {
    await api(pluginPath(plugin, step), { method: "POST", body: {} });
    showToast(message);
    after();
  };
  const choices: Choice[] =
    plugin.state === "disabled"
      ? [{ name: t.enable, sign: "power", run: () => enablePlugin(plugin, after) }]
      : [{ name: t.disable, sign: "power", run: () => tell("/disable", t.disabled(name)) }];
  return [
    ...choices,
    { name: t.reload, sign: "reload", run: () => tell("/reload", t.reloaded(name)) },
    {
      name: t.copyFolder,
      sign: "copy",
      run: async () => {
        if (await copyText(plugin.folder)) showToast(t.folderCopied);
      },
    },
    { name: t.logs, sign: "logs", href: logs },
    ...(plugin.origin === "home"
      ? [{ name: pluginWords().removeIt, sign: "trash" as const, run: () => (removing.value = { plugin, after }) }]
      : []),
  ];
}
