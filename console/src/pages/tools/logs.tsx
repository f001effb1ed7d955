/** The output of a plugin as it arrives: polled every second while the page is visible. A line on stdout that is no
 * answer is marked, for it broke the protocol. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { LogRow, PluginRow } from "toolyard-client";
import { api, withQuery, type ApiError } from "../../lib/api";
import { formatClockTime } from "../../lib/clock";
import { setQuery, queryParam } from "../../lib/router";
import { revealHidden } from "../../lib/hidden-characters";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Search } from "../../ui/field";
import { Empty, Fault, Loading } from "../../ui/state";
import { pluginWords } from "./words-plugin";

/** As many lines as are kept on the page. */
const MOST = 5000;

export function Logs({ plugin }: { plugin: PluginRow }) {
  const t = pluginWords();
  const lines = useSignal<readonly LogRow[]>([]);
  const lost = useSignal(0);
  const paused = useSignal(false);
  const state = useSignal<"loading" | "ready" | "fault">("loading");
  const fault = useSignal<ApiError | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const next = useRef(0);
  useEffect(() => {
    const gone = new AbortController();
    let timer = 0;
    const look = async () => {
      try {
        if (!paused.peek() && !document.hidden) {
          const page = await api<{ data: LogRow[]; next: number; lost: number }>(
            withQuery(`/v1/plugins/${encodeURIComponent(plugin.name)}/logs`, {
              folder: plugin.folder,
              after: next.current,
            }),
            { signal: gone.signal },
          );
          if (page.next < next.current) lines.value = []; // the server has begun anew
          next.current = page.next;
          if (page.lost) lost.value += page.lost;
          if (page.data.length) lines.value = [...lines.value, ...page.data].slice(-MOST);
          state.value = "ready";
        }
      } catch (error) {
        if (gone.signal.aborted) return;
        fault.value = error as ApiError;
        state.value = "fault";
      }
      if (!gone.signal.aborted) timer = window.setTimeout(look, 1000);
    };
    void look();
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [fault, lines, lost, paused, plugin.folder, plugin.name, state]);
  useEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines.value]);
  const search = queryParam("log").toLowerCase();
  const matching = search ? lines.value.filter((line) => line.text.toLowerCase().includes(search)) : lines.value;
  return (
    <div class="stack">
      <div class="tools-log-head">
        <Search label={t.searchLogs} value={queryParam("log")} onInput={(log) => setQuery({ log })} />
        <Chip tone={paused.value ? "warn" : "good"} live={!paused.value}>
          {paused.value ? t.paused : t.live}
        </Chip>
        <span class="faint tabular grow">
          {t.lines(matching.reduce((sum, line) => sum + line.text.trimEnd().split("\n").length, 0))}
        </span>
        <Button sign={paused.value ? "resume" : "pause"} onClick={() => (paused.value = !paused.value)}>
          {paused.value ? t.resume : t.pause}
        </Button>
        <Button sign="download" disabled={!lines.value.length} onClick={() => downloadLog(plugin.name, lines.value)}>
          {t.download}
        </Button>
      </div>
      {state.value === "loading" && <Loading rows={4} />}
      {state.value === "fault" && <Fault error={fault.value} />}
      {lost.value > 0 && <p class="faint">{t.lost(lost.value)}</p>}
      {state.value === "ready" && !lines.value.length && (
        <Empty sign="logs" title={t.noLogs}>
          {t.noLogsText}
        </Empty>
      )}
      {lines.value.length > 0 && (
        <div
          ref={box}
          class="tools-log"
          role="log"
          aria-label={t.log}
          aria-live="off"
          tabIndex={0}
          onScroll={(event) => {
            const node = event.currentTarget;
            atEnd.current = node.scrollTop + node.clientHeight > node.scrollHeight - 24;
          }}
        >
          {matching.map((line) => (
            <div key={line.n} class={line.stream}>
              <time class="tabular">{formatClockTime(line.at * 1000)}</time>
              <span>
                <span data-given>{revealHidden(line.text.trimEnd())}</span>
                {line.stream === "noise" && <b>{t.protocolError}</b>}
              </span>
            </div>
          ))}
        </div>
      )}
    </div>
  );
}

function downloadLog(name: string, lines: readonly LogRow[]): void {
  const text = lines
    .map((line) => `${new Date(line.at * 1000).toISOString()} ${line.stream} ${line.call} ${line.text}`)
    .join("\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: "text/plain" }));
  link.download = `${name}.log`;
  link.click();
  URL.revokeObjectURL(link.href);
}
