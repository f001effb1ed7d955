/** How the server is: health at a glance, and what the last day was like. */
import "./style.css";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { bytes, duration } from "../../lib/clock";
import { useThing } from "../../lib/resource";
import { StateChip, type Tone } from "../../ui/chip";
import { Fault, Loading } from "../../ui/state";
import { Ago } from "../../ui/time";
import { ATTENTION } from "../tools/catalogue-data";
import { pluginStateWord } from "../tools/words";
import { words } from "./words";

interface Status {
  version: string; started: number; database: { kind: string; ok: boolean; bytes: number | null }; disk: { free: number; total: number }; queue: { waiting: number; running: number };
  events: { newest: number; lag: number }; websockets: number; upstream: { url: string | null; others: string[] }; plugins: { by_state: Record<string, number> }; memory_bytes: number;
}
interface Stats { total: number; by_state: Record<string, number>; by_tool: { tool: string; calls: number; errors: number; p50_ms: number; max_ms: number }[]; errors: { code: string; count: number }[]; slow: { id: string; tool: string; time_ms: number; started: number; state: string }[] }

export default function StatusPage() {
  const t = words();
  const status = useThing<Status>("/v1/status");
  const stats = useThing<Stats>("/v1/calls/stats");
  useEffect(() => {
    const timer = setInterval(() => { status.reload(); stats.reload(); }, 10_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="page">
      <div class="head"><h1 class="grow">{t.title}</h1><a href="/metrics" target="_blank" rel="noopener">{t.metrics}</a><a href="/docs" target="_blank" rel="noopener">{t.docs}</a></div>
      {status.state === "fault" && !status.value && <Fault error={status.error} retry={status.reload} />}
      {status.value ? <Tiles status={status.value} /> : status.state === "loading" && <Loading rows={3} />}
      <h2>{t.lastDay}</h2>
      {stats.state === "fault" && !stats.value && <Fault error={stats.error} retry={stats.reload} />}
      {stats.value ? <Day stats={stats.value} /> : stats.state === "loading" && <Loading rows={4} />}
    </div>
  );
}

function Tiles({ status }: { status: Status }) {
  const t = words();
  const { disk, upstream, plugins, queue } = status;
  const tight = disk.free < disk.total * 0.05;
  return (
    <div class="status-tiles">
      <Tile name={t.version}>{status.version}<Small>{t.started}<Ago at={status.started} />{t.startedAfter}</Small></Tile>
      <Tile name={t.database} tone={status.database.ok ? "good" : "bad"}><span data-given>{status.database.kind}</span><Small>{status.database.ok ? t.ok : t.bad}{status.database.bytes !== null && ` · ${bytes(status.database.bytes)}`}</Small></Tile>
      <Tile name={t.disk} tone={tight ? "bad" : "good"}>{bytes(disk.free)}<Small>{t.of(bytes(disk.total))}</Small></Tile>
      <Tile name={t.queue} tone={queue.waiting > 100 ? "warn" : "good"}>{queue.running + queue.waiting}<Small>{t.queueText(queue.waiting, queue.running)}</Small></Tile>
      <Tile name={t.upstream} ><span data-given>{upstream.url ? host(upstream.url) : "tour"}</span><Small>{upstream.others.length ? t.others(upstream.others.length) : upstream.url ? t.upstreamOne : t.upstreamNone}</Small></Tile>
      <Tile name={t.plugins} tone={Object.keys(plugins.by_state).some((state) => ATTENTION.has(state)) ? "warn" : "good"}>{Object.values(plugins.by_state).reduce((sum, n) => sum + n, 0)}<Small>{Object.entries(plugins.by_state).map(([state, n]) => `${pluginStateWord(state)} ${n}`).join(" · ")}</Small></Tile>
      <Tile name={t.clients}>{status.websockets}<Small>{status.events.lag ? t.lag(status.events.lag) : t.noLag}</Small></Tile>
      <Tile name={t.memory}>{bytes(status.memory_bytes)}<Small>{t.memoryText}</Small></Tile>
    </div>
  );
}

function host(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}

function Tile({ name, tone = "plain", children }: { name: string; tone?: Tone; children: ComponentChildren }) {
  return <section class={`card status-tile ${tone}`} aria-label={name}><h3>{tone !== "plain" && <i aria-hidden="true" />}{name}</h3><div class="status-value">{children}</div></section>;
}

function Small({ children }: { children: ComponentChildren }) {
  return <div class="faint">{children}</div>;
}

function Day({ stats }: { stats: Stats }) {
  const t = words();
  if (!stats.total) return <p class="quiet card">{t.noCalls}</p>;
  const most = Math.max(...stats.by_tool.map((one) => one.calls), 1);
  return (
    <>
      <div class="row">{Object.entries(stats.by_state).map(([state, n]) => <a key={state} class="status-count" href={`/activity?state=${state}`}><StateChip state={state} /> {n}</a>)}</div>
      <section class="card status-wide">
        <h3>{t.perTool}</h3>
        <table class="grid">
          <thead><tr><th>{t.tool}</th><th>{t.count}</th><th>{t.failed}</th><th class="status-half">{t.half}</th><th>{t.most}</th></tr></thead>
          <tbody>{stats.by_tool.map((one) => <tr key={one.tool}><td data-given><a href={`/tools/${encodeURIComponent(one.tool)}`}>{one.tool}</a><meter min={0} max={most} value={one.calls} aria-label={`${one.tool}: ${one.calls}`} /></td><td>{one.calls}</td><td>{one.errors}</td><td class="status-half">{duration(one.p50_ms / 1000)}</td><td>{duration(one.max_ms / 1000)}</td></tr>)}</tbody>
        </table>
      </section>
      <div class="status-two">
        <section class="card stack"><h3>{t.errors}</h3>{stats.errors.length ? <ul class="status-list">{stats.errors.map((one) => <li key={one.code}><code>{one.code}</code><span>{one.count}</span></li>)}</ul> : <p class="quiet">{t.noErrors}</p>}</section>
        <section class="card stack"><h3>{t.slow}</h3><ul class="status-list">{stats.slow.map((one) => <li key={one.id}><a href={`/activity?call=${one.id}`} data-given>{one.tool}</a><span><Ago at={one.started} /> · {duration(one.time_ms / 1000)}</span></li>)}</ul></section>
      </div>
    </>
  );
}
