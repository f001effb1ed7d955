/** The last 15 runs of a tool, by anyone this key may see. A row shows its run; the round arrow runs it again. */
import { useEffect } from "preact/hooks";
import { formatDuration } from "../../lib/clock";
import { revealHidden } from "../../lib/hidden-characters";
import { useRecords } from "../../lib/resource";
import { hasScope, withQuery } from "../../lib/api";
import { IconButton } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { Fault, Loading } from "../../ui/state";
import { Ago } from "../../ui/time";
import type { Values } from "../../ui/schema-form";
import type { Call } from "./types";
import { tryWords } from "./words-try";

export function History({
  tool,
  shown,
  ended,
  onShow,
  onRun,
}: {
  tool: string;
  shown: string;
  ended: number;
  onShow: (id: string) => void;
  onRun: (input: Values) => void;
}) {
  const t = tryWords();
  const calls = useRecords<Call>(withQuery("/v1/calls", { tool, limit: 15 }), ["call."], (id) => `/v1/calls/${id}`);
  // A key that hears no events sees its own run all the same.
  const { reload } = calls;
  useEffect(() => {
    if (ended && !hasScope("admin")) reload();
  }, [ended, reload]);
  const rows = calls.rows.filter((call) => call.tool === tool).slice(0, 15);
  return (
    <section class="tools-history" aria-label={t.history}>
      <h2>
        {t.history}
        {rows.length > 0 && <span class="count">{rows.length}</span>}
      </h2>
      {calls.state === "loading" && !rows.length && <Loading rows={3} />}
      {calls.state === "fault" && <Fault error={calls.error} retry={calls.reload} />}
      {calls.state === "ready" && !rows.length && <p class="quiet">{t.noHistory}</p>}
      <ul>
        {rows.map((call) => {
          const what = summary(call.arguments) || t.noInput;
          return (
            <li key={call.id} class={call.id === shown ? "on" : ""}>
              <button
                type="button"
                class="tools-past"
                data-row
                data-given
                aria-label={t.show(what)}
                aria-current={call.id === shown || undefined}
                onClick={() => onShow(call.id)}
              >
                <StateChip state={call.reason === "CANCELLED" ? "cancelled" : call.state} />
                <span class="mono cut grow" title={what}>
                  {what}
                </span>
                <span class="faint tabular">
                  {call.time_ms !== null && call.time_ms !== undefined ? formatDuration(call.time_ms / 1000) : ""}
                </span>
                <span class="faint">
                  <Ago at={call.started} />
                </span>
              </button>
              <IconButton label={t.rerun} sign="retry" onClick={() => onRun(call.arguments)} />
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function summary(input: Values): string {
  return revealHidden(
    Object.entries(input)
      .map(
        ([name, value]) =>
          `${name}=${typeof value === "string" ? value.slice(0, 80) : JSON.stringify(value).slice(0, 80)}`,
      )
      .join("  ")
      .replaceAll("\n", "⏎"),
  ).slice(0, 240);
}
