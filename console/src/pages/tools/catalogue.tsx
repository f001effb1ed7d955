/** Every tool there is, by where it comes from; on top what waits for a person. */
import type { CallStatistics, PluginRow, ToolSummary } from "toolyard-client";
import { hasScope } from "../../lib/api";
import { formatNumber } from "../../lib/language";
import { setQuery, queryParam } from "../../lib/router";
import { lazyPage } from "../../lib/lazy-page";
import { useResource } from "../../lib/resource";
import { revealHidden } from "../../lib/hidden-characters";
import { Button } from "../../ui/button";
import { Search } from "../../ui/field";
import { Empty, Fault, Loading } from "../../ui/state";
import { VirtualGrid } from "../../ui/virtual-grid";
import { Card, AttentionNote } from "./card";
import { ATTENTION, entriesOf, favourites, matchesFilter, type Entry } from "./catalogue-data";
import { kindWord, pluginStateWord, riskWord, words } from "./words";

export const Install = lazyPage<{ onClose: () => void; onInstalled: () => void }>(() =>
  import("./install").then((module) => ({ default: module.Install })),
);

const WHOLE = 90;
let titles: Intl.Collator | undefined; // slow to make: not before there is something to sort

export function Catalogue() {
  const t = words();
  const tools = useResource<{ data: ToolSummary[] }>("/v1/tool-summaries", ["plugin."]);
  const plugins = useResource<{ data: PluginRow[] }>(hasScope("admin") ? "/v1/plugins" : null, ["plugin."]);
  const stats = useResource<CallStatistics>("/v1/calls/stats", ["call.finished"]);
  const installing = queryParam("install") !== "";
  const query = {
    search: queryParam("q"),
    kind: queryParam("kind"),
    state: queryParam("state"),
    risk: queryParam("risk"),
  };
  const reload = () => {
    tools.reload();
    plugins.reload();
  };
  const all = entriesOf(tools.value?.data ?? [], plugins.value?.data ?? [], stats.value);
  const fitting = all.filter((entry) => matchesFilter(entry, query)).sort(byStar);
  const isFiltered = Boolean(query.search || query.kind || query.state || query.risk);
  const waitsFor = hasScope("admin") && plugins.state === "loading";
  return (
    <div class="page">
      <div class="head">
        <h1 class="grow">
          {t.title}
          {tools.value && <span class="count">{formatNumber(all.length)}</span>}
        </h1>
        {hasScope("admin") && (
          <Button sign="plus" kind="primary" onClick={() => setQuery({ install: "1" }, false)}>
            {t.install}
          </Button>
        )}
      </div>
      <div class="tools-filters">
        <Search value={query.search} label={t.search} onInput={(q) => setQuery({ q })} />
        <Filter
          label={t.kind}
          value={query.kind}
          options={values(all, (one) => one.kind)}
          name={kindWord}
          onChoose={(kind) => setQuery({ kind })}
        />
        <Filter
          label={t.state}
          value={query.state}
          options={[
            ...(all.some((one) => ATTENTION.has(one.state)) ? ["attention"] : []),
            ...values(all, (one) => one.state),
          ]}
          name={pluginStateWord}
          onChoose={(state) => setQuery({ state })}
        />
        <Filter
          label={t.risk}
          value={query.risk}
          options={values(all, (one) => one.risk)}
          name={riskWord}
          onChoose={(risk) => setQuery({ risk })}
        />
      </div>
      {tools.state === "fault" && <Fault error={tools.error} retry={tools.reload} />}
      {plugins.state === "fault" && <Fault title={t.pluginsFault} error={plugins.error} retry={plugins.reload} />}
      {((tools.state === "loading" && !tools.value) || (waitsFor && tools.state !== "fault")) && <Loading rows={6} />}
      {tools.value && !waitsFor && <Groups entries={fitting} reload={reload} />}
      {tools.value &&
        !waitsFor &&
        !fitting.length &&
        (isFiltered ? (
          <Empty
            sign="search"
            title={t.noMatches}
            action={<Button onClick={() => setQuery({ q: "", kind: "", state: "", risk: "" })}>{t.clear}</Button>}
          >
            {t.noMatchesText}
          </Empty>
        ) : (
          <Empty sign="tools" title={t.none}>
            {t.noneText}
          </Empty>
        ))}
      {installing && <Install onClose={() => setQuery({ install: null })} onInstalled={reload} />}
    </div>
  );
}

function Groups({ entries, reload }: { entries: readonly Entry[]; reload: () => void }) {
  const t = words();
  // One that only lacks settings stays with the others: many people never want to set it up.
  const isWanting = (one: Entry) => ATTENTION.has(one.state) && one.state !== "missing_config";
  const wanting = entries.filter(isWanting);
  const rest = entries.filter((one) => !isWanting(one));
  const of = (group: Entry["group"]) => rest.filter((one) => one.group === group);
  const servers = [...new Set(of("mcp").map((one) => one.tool?.server ?? ""))].sort();
  const groups: [string, Entry[]][] = [
    [t.plugins, of("plugins")],
    ...servers.map((name): [string, Entry[]] => [
      t.mcpOf(revealHidden(name)),
      of("mcp").filter((one) => (one.tool?.server ?? "") === name),
    ]),
    [t.remote, of("remote")],
    [t.builtIn, of("built-in")],
  ];
  return (
    <>
      {wanting.length > 0 && (
        <section class="stack">
          <h2>
            {t.needsYou}
            <span class="count">{formatNumber(wanting.length)}</span>
          </h2>
          <ul class="tools-attention-list">
            {wanting.map((entry) => (
              <AttentionNote key={entry.plugin?.folder ?? entry.name} entry={entry} reload={reload} />
            ))}
          </ul>
        </section>
      )}
      {groups.map(
        ([name, list]) =>
          list.length > 0 && (
            <section class="stack" key={name}>
              <h2>
                {name}
                <span class="count">{formatNumber(list.length)}</span>
              </h2>
              <VirtualGrid
                class="tools-cards"
                entries={list}
                whole={rest.length <= WHOLE}
                draw={(entry) => <Card key={entry.plugin?.folder ?? entry.name} entry={entry} reload={reload} />}
              />
            </section>
          ),
      )}
    </>
  );
}

function Filter({
  label,
  value,
  options,
  name,
  onChoose,
}: {
  label: string;
  value: string;
  options: readonly string[];
  name: (value: string) => string;
  onChoose: (value: string) => void;
}) {
  return (
    <label class="tools-filter">
      <span>{label}</span>
      <select value={value} onInput={(event) => onChoose(event.currentTarget.value)}>
        <option value="">{words().any}</option>
        {options.map((one) => (
          <option key={one} value={one}>
            {name(one)}
          </option>
        ))}
      </select>
    </label>
  );
}

function values(entries: readonly Entry[], of: (entry: Entry) => string): string[] {
  return [...new Set(entries.map(of).filter(Boolean))].sort();
}

function byStar(one: Entry, other: Entry): number {
  return (
    Number(favourites.value.has(other.name)) - Number(favourites.value.has(one.name)) ||
    (titles ??= new Intl.Collator(undefined, { numeric: true })).compare(one.title, other.title)
  );
}
