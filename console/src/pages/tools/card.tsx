/** One tool or plugin of the catalogue: a card, or a row on a phone. */
import type { PluginDetail, PluginRow } from "toolyard-client";
import { useResource } from "../../lib/resource";
import { revealHidden } from "../../lib/hidden-characters";
import { Icon } from "../../ui/icon";
import { messageIn } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import { toolPath, type Entry } from "./catalogue-data";
import { DisabledReason } from "./disabled";
import { PluginState, Star, DayStats } from "./marks";
import { Menu } from "./menu";
import { actionsOf, pluginPath } from "./plugin-actions";
import { kindWord, pluginStateWord, riskWord, attentionText, words } from "./words";
import { pluginWords } from "./words-plugin";

export function Card({ entry, reload }: { entry: Entry; reload: () => void }) {
  const t = words();
  const title = revealHidden(entry.title);
  return (
    <li class="card tools-card">
      <div class="tools-card-top">
        <a class="tools-name" href={toolPath(entry)} data-row data-given>
          <strong class="cut" title={title}>
            {title}
          </strong>
          {(entry.title !== entry.name || entry.version) && (
            <span class="faint mono cut" title={entry.name}>
              {[entry.title !== entry.name ? entry.name : "", entry.version].filter(Boolean).join(" · ")}
            </span>
          )}
        </a>
        <Star name={entry.name} title={title} />
        {entry.plugin && (
          <Menu label={t.more(title)} choices={actionsOf(entry.plugin, toolPath(entry, "logs"), reload)} />
        )}
      </div>
      {entry.about !== entry.title && (
        <p class="tools-about quiet">
          {entry.about ? (
            <span data-given>{revealHidden(entry.about)}</span>
          ) : entry.state === "disabled" ? (
            <DisabledReason reason={entry.reason} />
          ) : (
            <MessageText message={entry.reason} />
          )}
        </p>
      )}
      {entry.state === "missing_config" && (
        <a class="tools-missing" href={toolPath(entry, "config")}>
          <Icon sign="settings" size={15} />
          <span>
            <MessageText message={entry.reason} />
          </span>
        </a>
      )}
      <div class="tools-card-foot">
        {entry.state === "ready" ? (
          <span class="tools-ready" title={pluginStateWord("ready")}>
            <span class="hush">{pluginStateWord("ready")}</span>
          </span>
        ) : (
          <PluginState state={entry.state} />
        )}
        <span class="tools-tag">{kindWord(entry.kind)}</span>
        {entry.risk && <span class={`tools-tag ${entry.risk}`}>{riskWord(entry.risk)}</span>}
        <span class="grow" />
        <DayStats stats={entry.stats} />
      </div>
    </li>
  );
}

/** A plugin that waits for a person: why, and the one thing to do. */
export function AttentionNote({ entry, reload }: { entry: Entry; reload: () => void }) {
  const t = words();
  const title = revealHidden(entry.title);
  const first = entry.plugin?.problems.find((one) => !one.warning);
  const review = entry.state === "needs_review" || entry.state === "changed";
  const place = first?.line ? `${first.file || "plugin-manifest.json"}:${first.line}:${first.column}` : "";
  return (
    <li class={`tools-attention ${review ? "warn" : "bad"}`}>
      <div class="tools-attention-text">
        <div class="row">
          <a class="tools-attention-name" href={toolPath(entry, "manifest")} data-row data-given>
            {title}
          </a>
          <PluginState state={entry.state} />
        </div>
        <p>{attentionText(entry.state)}</p>
        {review && entry.plugin && <CommandPreview plugin={entry.plugin} />}
        {!review && (first || entry.reason.text) && (
          <p class="faint">
            {place && (
              <span class="mono" data-given>
                {place}{" "}
              </span>
            )}
            <MessageText message={first ? messageIn(first, "message") : entry.reason} />
          </p>
        )}
      </div>
      <div class="tools-attention-actions">
        <a class="button primary" href={toolPath(entry, "manifest")}>
          {review ? t.review : t.seeProblem}
        </a>
        {entry.plugin && (
          <Menu label={t.more(title)} choices={actionsOf(entry.plugin, toolPath(entry, "logs"), reload)} />
        )}
      </div>
    </li>
  );
}

/** The whole command line of a plugin that nobody has allowed: what the decision is about. */
function CommandPreview({ plugin }: { plugin: PluginRow }) {
  const detail = useResource<PluginDetail>(pluginPath(plugin), ["plugin."]);
  const command = detail.value?.review?.command_line;
  return command ? (
    <code class="tools-command-line" aria-label={pluginWords().commandLine}>
      {revealHidden(command)}
    </code>
  ) : null;
}
