/** One tool, or one plugin that gives none yet: what it is, and its tabs. */
import { useEffect } from "preact/hooks";
import type { PluginDetail, PluginRow, ToolRow, ToolSummary } from "toolyard-client";
import { hasScope, withQuery } from "../../lib/api";
import { language } from "../../lib/language";
import { lazyPage, loadAhead } from "../../lib/lazy-page";
import { useResource, type Resource } from "../../lib/resource";
import { setQuery, queryParam, navigate } from "../../lib/router";
import { useTitle } from "../../lib/title";
import { revealHidden } from "../../lib/hidden-characters";
import { Button } from "../../ui/button";
import { Copyable } from "../../ui/copyable";
import { Icon } from "../../ui/icon";
import { Empty, Fault, Loading, Notice } from "../../ui/state";
import { Tabs } from "../../ui/tabs";
import { messageIn } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import { ATTENTION, firstSentence, toolPath } from "./catalogue-data";
import { Description } from "./description";
import { DisabledNotice } from "./disabled";
import { PluginState, Star } from "./marks";
import { Menu } from "./menu";
import { actionsOf } from "./plugin-actions";
import { aboutOf, titleOf } from "./translation";
import { TryIt } from "./try-it";
import { kindWord, riskWord, attentionText, words } from "./words";

const ManifestTab = lazyPage<{ plugin: PluginDetail; reload: () => void }>(() =>
  import("./manifest").then((module) => ({ default: module.ManifestTab })),
);
const ConfigTab = lazyPage<{ plugin: PluginDetail; put: (value: PluginDetail) => void; reload: () => void }>(() =>
  import("./config").then((module) => ({ default: module.ConfigTab })),
);
const Logs = lazyPage<{ plugin: PluginRow }>(() => import("./logs").then((module) => ({ default: module.Logs })));
const Docs = lazyPage<{ plugin: PluginDetail }>(() => import("./docs").then((module) => ({ default: module.Docs })));

type Tab = "try" | "description" | "manifest" | "config" | "logs" | "docs";

export function ToolPage({ name }: { name: string }) {
  const t = words();
  useEffect(() => loadAhead([ManifestTab.load]), []);
  const tools = useResource<{ data: ToolSummary[] }>("/v1/tool-summaries", ["plugin."]);
  const isListed = tools.value?.data.some((one) => one.name === name);
  const whole = useResource<ToolRow>(isListed ? `/v1/tools/${encodeURIComponent(name)}` : null, ["plugin."]);
  const plugins = useResource<{ data: PluginRow[] }>(hasScope("admin") ? "/v1/plugins" : null, ["plugin."]);
  const folder = queryParam("folder");
  const listedTool = (isListed && whole.value?.name === name && whole.value) || null;
  const named =
    plugins.value?.data.filter((one) =>
      folder ? one.folder === folder : one.name === (listedTool ? listedTool.plugin : name),
    ) ?? [];
  const plugin = named.find((one) => one.tools.length) ?? named[0] ?? null;
  // A folder may name a plugin that wants the name of another, and then the tool is not its own.
  const tool = !folder || plugin?.tools.includes(name) ? listedTool : null;
  const reload = () => {
    tools.reload();
    whole.reload();
    plugins.reload();
  };
  const isLoading =
    (tools.state === "loading" && !tools.value) ||
    (isListed && !listedTool && whole.state !== "fault") ||
    (hasScope("admin") && plugins.state === "loading" && !plugins.value);
  return (
    <div class="page">
      <a class="tools-back" href="/tools">
        <Icon sign="left" size={16} />
        {t.back}
      </a>
      {tools.state === "fault" && !tools.value && <Fault error={tools.error} retry={tools.reload} />}
      {isListed && whole.state === "fault" && !whole.value && <Fault error={whole.error} retry={whole.reload} />}
      {isLoading && <Loading rows={5} />}
      {!isLoading && (tool || plugin) && (
        <ToolView key={plugin?.folder ?? name} tool={tool} plugin={plugin} reload={reload} />
      )}
      {!isLoading && tools.value && !tool && !plugin && (
        <Empty sign="tools" title={t.noTool} action={<Button onClick={() => navigate("/tools")}>{t.back}</Button>}>
          {t.noToolText}
        </Empty>
      )}
    </div>
  );
}

function ToolView({ tool, plugin, reload }: { tool: ToolRow | null; plugin: PluginRow | null; reload: () => void }) {
  const t = words();
  const lang = language.value === "zh" ? "zh" : "en";
  const detail = useResource<PluginDetail>(
    plugin ? withQuery(`/v1/plugins/${encodeURIComponent(plugin.name)}`, { folder: plugin.folder, lang }) : null,
    ["plugin."],
  );
  const all = () => {
    reload();
    detail.reload();
  };
  const name = tool?.name ?? plugin!.name;
  const title = revealHidden(titleOf((tool ?? plugin)!));
  useTitle(title);
  const described = tool ?? (detail.value ? { ...plugin!, description: detail.value.description } : null);
  const about = described ? revealHidden(firstSentence(aboutOf(described))) : "";
  const tabs: { id: Tab; name: string }[] = [];
  if (tool) tabs.push({ id: "try", name: t.try }, { id: "description", name: t.description });
  if (plugin)
    tabs.push(
      ...(tool ? [] : [{ id: "description" as const, name: t.description }]),
      { id: "manifest", name: t.manifest },
      { id: "config", name: t.config },
      { id: "logs", name: t.logs },
      { id: "docs", name: t.docs },
    );
  const state = plugin?.state ?? "ready";
  const requestedTab = queryParam("tab") as Tab;
  const open = tabs.some((one) => one.id === requestedTab)
    ? requestedTab
    : tool
      ? "try"
      : state === "disabled"
        ? "description"
        : state === "missing_config"
          ? "config"
          : "manifest";
  return (
    <>
      <div class="tools-head">
        <div class="grow">
          <div class="row">
            <h1 data-given>{title}</h1>
            <PluginState state={state} />
          </div>
          <p class="tools-facts faint">
            {title !== name && (
              <span class="mono" data-given>
                {revealHidden(name)}
              </span>
            )}
            <span>{kindWord(tool?.kind ?? plugin!.kind)}</span>
            {tool && <span>{riskWord(tool.risk)}</span>}
            {(tool?.version || plugin?.version) && (
              <span>{t.version(revealHidden(tool?.version || plugin!.version))}</span>
            )}
            {tool?.server && <span>{t.by(revealHidden(tool.server))}</span>}
          </p>
          {about && (
            <p class="tools-about quiet" data-given>
              {about}
            </p>
          )}
        </div>
        <Star name={name} title={title} />
        {plugin && (
          <Menu label={t.more(title)} choices={actionsOf(plugin, toolPath({ name, tool, plugin }, "logs"), all)} />
        )}
      </div>
      {plugin && (ATTENTION.has(state) || state === "unsupported" || state === "duplicate") && open !== "manifest" && (
        <Notice
          tone="warn"
          action={
            state === "missing_config" && open !== "config" ? (
              <a class="button" href={toolPath({ name, tool, plugin }, "config")}>
                {t.configure}
              </a>
            ) : undefined
          }
        >
          <p>{attentionText(state)}</p>
          {state !== "needs_review" && state !== "changed" && (
            <p class="faint">
              <MessageText message={messageIn(plugin, "reason")} />
            </p>
          )}
        </Notice>
      )}
      {plugin && state === "disabled" && <DisabledNotice plugin={plugin} reload={all} />}
      {plugin && plugin.hides.length > 0 && (
        <Notice>
          <p>{t.runsInstead}</p>
          {plugin.hides.map((one) => (
            <Copyable key={one} text={one} />
          ))}
        </Notice>
      )}
      <Tabs label={t.tabs} tabs={tabs} open={open} onOpen={(id) => setQuery({ tab: id === "try" ? "" : id }, false)} />
      {open === "try" && tool && <TryIt tool={tool} takesTests={detail.value?.takes_tests ?? false} />}
      {open === "description" &&
        (plugin ? (
          <PluginTab thing={detail} draw={(all) => <Description tool={tool} plugin={all} />} />
        ) : (
          <Description tool={tool} plugin={null} />
        ))}
      {open === "manifest" && <PluginTab thing={detail} draw={(one) => <ManifestTab plugin={one} reload={all} />} />}
      {open === "config" && (
        <PluginTab thing={detail} draw={(one) => <ConfigTab plugin={one} put={detail.put} reload={reload} />} />
      )}
      {open === "logs" && plugin && <Logs plugin={plugin} />}
      {open === "docs" && <PluginTab thing={detail} draw={(one) => <Docs plugin={one} />} />}
    </>
  );
}

function PluginTab({
  thing,
  draw,
}: {
  thing: Resource<PluginDetail>;
  draw: (plugin: PluginDetail) => preact.ComponentChild;
}) {
  if (thing.state === "fault" && !thing.value) return <Fault error={thing.error} retry={thing.reload} />;
  return thing.value ? <>{draw(thing.value)}</> : <Loading rows={4} />;
}
