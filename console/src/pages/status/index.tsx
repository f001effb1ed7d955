/** The status of the server: health at a glance, and the last day. */
import "./style.css";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { CallStatistics, ProviderContact, Status } from "toolyard-client";
import { formatBytes, formatDuration, formatMoment } from "../../lib/clock";
import { codeLink, errorWords, isErrorCode } from "../../lib/error-codes";
import { formatNumber } from "../../lib/language";
import { useResource } from "../../lib/resource";
import { StateChip, type Tone } from "../../ui/chip";
import { Icon, type Sign } from "../../ui/icon";
import { Fault, Loading, Notice } from "../../ui/state";
import { messageIn } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import { Ago } from "../../ui/time";
import { ATTENTION } from "../tools/catalogue-data";
import { pluginStateWord } from "../tools/words";
import { words } from "./words";

export default function StatusPage() {
  const t = words();
  const status = useResource<Status>("/v1/status");
  const stats = useResource<CallStatistics>("/v1/calls/stats");
  const { reload: reloadStatus } = status;
  const { reload: reloadStats } = stats;
  useEffect(() => {
    const timer = setInterval(() => {
      reloadStatus();
      reloadStats();
    }, 10_000);
    return () => clearInterval(timer);
  }, [reloadStats, reloadStatus]);
  return (
    <div class="page">
      <div class="head">
        <h1 class="grow">{t.title}</h1>
        <a href="/metrics" title={t.metricsTitle} target="_blank" rel="noopener">
          {t.metrics}
        </a>
        <a href="/docs" target="_blank" rel="noopener">
          {t.docs}
        </a>
      </div>
      {status.state === "fault" && !status.value && <Fault error={status.error} retry={status.reload} />}
      {status.value ? (
        <>
          <Tiles status={status.value} />
          <FailingProviders upstream={status.value.upstream} />
        </>
      ) : (
        status.state === "loading" && <Loading rows={3} />
      )}
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
  const servers = Object.entries(status.mcp.by_state);
  return (
    <div class="status-tiles">
      <Tile name={t.version}>
        {status.version}
        <Small>
          {t.started}
          <Ago at={status.started} />
          {t.startedAfter}
        </Small>
      </Tile>
      <Tile name={t.database} tone={status.database.ok ? "good" : "bad"}>
        <span data-given>{DATABASES[status.database.kind] ?? status.database.kind}</span>
        <Small>
          {status.database.ok ? t.ok : t.bad}
          {status.database.bytes !== null && ` · ${formatBytes(status.database.bytes)}`}
        </Small>
      </Tile>
      <Tile name={t.disk} tone={tight ? "bad" : "good"}>
        {formatBytes(disk.free)}
        <Small>{t.of(formatBytes(disk.total))}</Small>
      </Tile>
      <Tile name={t.queue} title={t.queueTitle} tone={queue.waiting > 100 ? "warn" : "good"}>
        {queue.running + queue.waiting}
        <Small>{t.queueText(queue.waiting, queue.running)}</Small>
      </Tile>
      <Provider upstream={upstream} />
      <Tile
        name={t.plugins}
        tone={
          Object.keys(plugins.by_state).some((state) => ATTENTION.has(state) && state !== "missing_config")
            ? "warn"
            : "good"
        }
      >
        {Object.values(plugins.by_state).reduce((sum, n) => sum + n, 0)}
        <Small>
          {Object.entries(plugins.by_state)
            .map(([state, n]) => `${pluginStateWord(state)} ${n}`)
            .join(" · ")}
        </Small>
      </Tile>
      {servers.length > 0 && (
        <Tile name={t.mcp} tone={status.mcp.crashes ? "warn" : "good"}>
          {servers.reduce((sum, [, n]) => sum + n, 0)}
          <Small>
            {servers.map(([state, n]) => `${pluginStateWord(state)} ${n}`).join(" · ")}
            {status.mcp.crashes > 0 && ` · ${t.crashes(status.mcp.crashes)}`}
          </Small>
        </Tile>
      )}
      <Tile name={t.clients} title={t.clientsTitle} tone={status.events.lag > 100 ? "warn" : "good"}>
        {status.websockets}
        <Small>{status.events.lag ? t.lag(status.events.lag) : t.noLag}</Small>
      </Tile>
      <Tile name={t.memory}>
        {formatBytes(status.memory_bytes)}
        <Small>{t.memoryText}</Small>
      </Tile>
    </div>
  );
}

/** The provider that is asked by default; those that fail are told below. */
function Provider({ upstream }: { upstream: Status["upstream"] }) {
  const t = words();
  const named = upstream.url ? host(upstream.url) : upstream.others[0];
  const contact = upstream.contacts[""] ?? Object.values(upstream.contacts)[0];
  const tone = failingProviders(upstream).length ? "bad" : contact?.answered ? "good" : "plain";
  return (
    <Tile name={t.upstream} tone={tone}>
      {named ? <span data-given>{named}</span> : <span>{t.guide}</span>}
      {contact?.answered ? (
        <Small>
          {t.answered}
          <Ago at={contact.answered} />
        </Small>
      ) : (
        <Small>{contact ? t.notAnswered : t.upstreamNone}</Small>
      )}
      {upstream.others.length > 0 && upstream.url && <Small>{t.others(upstream.others.length)}</Small>}
    </Tile>
  );
}

function failingProviders(upstream: Status["upstream"]): [string, ProviderContact][] {
  return Object.entries(upstream.contacts).filter(([, one]) => one.failed !== null && one.failed > (one.answered ?? 0));
}

function FailingProviders({ upstream }: { upstream: Status["upstream"] }) {
  const t = words();
  return (
    <>
      {failingProviders(upstream).map(([name, one]) => (
        <Notice key={name} tone="bad">
          <strong data-given>{name || (upstream.url ? host(upstream.url) : "")}</strong> {t.failedAt}
          <Ago at={one.failed!} />
          {t.failedAfter}
          <p>
            <MessageText message={messageIn(one, "error")} />
          </p>
        </Notice>
      ))}
    </>
  );
}

function host(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}

const DATABASES: Record<string, string> = { sqlite: "SQLite", postgresql: "PostgreSQL" };
const SIGNS: Partial<Record<Tone, Sign>> = { good: "check", warn: "warning", bad: "error" };

function Tile({
  name,
  title,
  tone = "plain",
  children,
}: {
  name: string;
  /** What the name means, if that needs more words. */
  title?: string;
  tone?: Tone;
  children: ComponentChildren;
}) {
  return (
    <section class={`card status-tile ${tone}`} aria-label={name} title={title}>
      <h2>
        {tone in SIGNS && <Icon sign={SIGNS[tone]!} size={15} />}
        {name}
      </h2>
      <div class="status-value">{children}</div>
    </section>
  );
}

function Small({ children }: { children: ComponentChildren }) {
  return <div class="faint">{children}</div>;
}

function Day({ stats }: { stats: CallStatistics }) {
  const t = words();
  if (!stats.total) return <p class="quiet card">{t.noCalls}</p>;
  const most = Math.max(...stats.by_tool.map((one) => one.calls), 1);
  return (
    <>
      {stats.is_capped && <p class="quiet">{t.capped(formatNumber(stats.total), formatMoment(stats.counted_since))}</p>}
      <div class="row">
        {Object.entries(stats.by_state).map(([state, n]) => (
          <a key={state} class="status-count" href={`/activity?state=${state}`}>
            <StateChip state={state} /> {n}
          </a>
        ))}
      </div>
      <section class="card status-wide">
        <h3>{t.perTool}</h3>
        <table class="grid">
          <thead>
            <tr>
              <th>{t.tool}</th>
              <th>{t.count}</th>
              <th>{t.failed}</th>
              <th class="status-half" title={t.halfTitle}>
                {t.half}
              </th>
              <th>{t.most}</th>
            </tr>
          </thead>
          <tbody>
            {stats.by_tool.map((one) => (
              <tr key={one.tool}>
                <td data-given>
                  <a href={`/tools/${encodeURIComponent(one.tool)}`}>{one.tool}</a>
                  <meter min={0} max={most} value={one.calls} aria-label={`${one.tool}: ${formatNumber(one.calls)}`} />
                </td>
                <td>{formatNumber(one.calls)}</td>
                <td>{formatNumber(one.errors)}</td>
                <td class="status-half">{formatDuration((one.p50_ms ?? 0) / 1000)}</td>
                <td>{formatDuration((one.max_ms ?? 0) / 1000)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <div class="status-two">
        <section class="card stack">
          <h3>{t.errors}</h3>
          {stats.errors.length ? (
            <ul class="status-list">
              {stats.errors.map((one) => (
                <li key={one.code}>
                  <div>
                    <a class="mono" href={`${codeLink(one.code)}&since=24h`} data-given>
                      {one.code}
                    </a>
                    {isErrorCode(one.code) && <Small>{errorWords()[one.code]}</Small>}
                  </div>
                  <span>{formatNumber(one.count)}</span>
                </li>
              ))}
            </ul>
          ) : (
            <p class="quiet">{t.noErrors}</p>
          )}
        </section>
        <section class="card stack">
          <h3>{t.slow}</h3>
          <ul class="status-list">
            {stats.slow.map((one) => (
              <li key={one.id}>
                <a href={`/activity?call=${one.id}`} data-given>
                  {one.tool}
                </a>
                <span>
                  <Ago at={one.started} /> · {formatDuration((one.time_ms ?? 0) / 1000)}
                </span>
              </li>
            ))}
          </ul>
        </section>
      </div>
    </>
  );
}
