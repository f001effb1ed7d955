/** One tool or plugin of the catalogue: a card, or a row on a phone. */
import { useThing } from "../../lib/resource";
import { visible } from "../../lib/visible";
import { addressOf, type Entry } from "./catalogue-data";
import { PluginState, Star, Today } from "./marks";
import { Menu } from "./menu";
import { actionsOf, pluginPath } from "./plugin-actions";
import type { Plugin, PluginWhole } from "./types";
import { kindWord, pluginStateWord, riskWord, todo, words } from "./words";
import { pluginWords } from "./words-plugin";

export function Card({ entry, reload }: { entry: Entry; reload: () => void }) {
  const t = words();
  const title = visible(entry.title);
  return (
    <li class="card tools-card">
      <div class="tools-card-top">
        <a class="tools-name" href={addressOf(entry)} data-row data-given>
          <strong class="cut" title={title}>{title}</strong>
          {(entry.title !== entry.name || entry.version) && <span class="faint mono cut" title={entry.name}>{[entry.title !== entry.name ? entry.name : "", entry.version].filter(Boolean).join(" · ")}</span>}
        </a>
        <Star name={entry.name} title={title} />
        {entry.plugin && <Menu label={t.more(title)} choices={actionsOf(entry.plugin, addressOf(entry, "logs"), reload)} />}
      </div>
      <p class="tools-about quiet" data-given>{visible(entry.about || entry.reason)}</p>
      <div class="tools-card-foot">
        {entry.state === "ready" ? <span class="tools-ready" title={pluginStateWord("ready")}><span class="hush">{pluginStateWord("ready")}</span></span> : <PluginState state={entry.state} />}
        <span class="tools-tag">{kindWord(entry.kind)}</span>
        {entry.risk && <span class={`tools-tag ${entry.risk}`}>{riskWord(entry.risk)}</span>}
        <span class="grow" />
        <Today stats={entry.stats} />
      </div>
    </li>
  );
}

/** A plugin that waits for a person: why, and the one thing to do. */
export function Wanting({ entry, reload }: { entry: Entry; reload: () => void }) {
  const t = words();
  const title = visible(entry.title);
  const first = entry.plugin?.problems.find((one) => !one.warning);
  const review = entry.state === "needs_review" || entry.state === "changed";
  const tab = entry.state === "missing_config" ? "config" : "manifest";
  const place = first?.line ? `${first.file || "plugin-manifest.json"}:${first.line}:${first.column}` : "";
  return (
    <li class={`tools-wanting ${review || entry.state === "missing_config" ? "warn" : "bad"}`}>
      <div class="tools-wanting-text">
        <div class="row"><a class="tools-wanting-name" href={addressOf(entry, tab)} data-row data-given>{title}</a><PluginState state={entry.state} /></div>
        <p>{todo(entry.state)}</p>
        {review && entry.plugin && <WouldRun plugin={entry.plugin} />}
        {!review && (first || entry.reason) && <p class="faint" data-given>{place && <span class="mono">{place} </span>}{visible(first?.message ?? entry.reason)}</p>}
      </div>
      <div class="tools-wanting-do">
        <a class="button primary" href={addressOf(entry, tab)}>{review ? t.review : entry.state === "missing_config" ? t.configure : t.seeProblem}</a>
        {entry.plugin && <Menu label={t.more(title)} choices={actionsOf(entry.plugin, addressOf(entry, "logs"), reload)} />}
      </div>
    </li>
  );
}

/** The whole command line of a plugin that nobody has allowed: what the decision is about. */
function WouldRun({ plugin }: { plugin: Plugin }) {
  const whole = useThing<PluginWhole>(pluginPath(plugin), ["plugin."]);
  const command = whole.value?.review?.command_line;
  return command ? <code class="tools-would" aria-label={pluginWords().commandLine}>{visible(command)}</code> : null;
}
