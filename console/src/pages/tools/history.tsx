/** The last 15 runs of a tool, by anyone this key may see. A row shows its run; the round arrow runs it again. */
import { useEffect } from "preact/hooks";
import type { CallRow } from "toolyard-client";
import { formatDuration } from "../../lib/clock";
import { useRecords } from "../../lib/resource";
import { hasScope, withQuery } from "../../lib/api";
import { IconButton } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { Fault, Loading } from "../../ui/state";
import { Ago } from "../../ui/time";
import type { Values } from "../../ui/schema-form";
import { summarizeInput } from "./input-summary";
import { tryWords } from "./words-try";

const MOST = 15;

/** The last calls of a tool. A key that hears no events sees its own run all the same, when it has `ended`. */
export function useHistory(tool: string, ended: number) {
  const calls = useRecords<CallRow>(
    withQuery("/v1/calls", { tool, limit: MOST }),
    ["call."],
    (id) => `/v1/calls/${id}`,
  );
  const { reload } = calls;
  useEffect(() => {
    if (ended && !hasScope("admin")) reload();
  }, [ended, reload]);
  return { ...calls, rows: calls.rows.filter((call) => call.tool === tool).slice(0, MOST) };
}

export function History({
  calls,
  shown,
  onShow,
  onRun,
}: {
  calls: ReturnType<typeof useHistory>;
  shown: string;
  onShow: (id: string) => void;
  onRun: (input: Values) => void;
}) {
  const t = tryWords();
  const { rows } = calls;
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
          const what = summarizeInput(call.arguments as Values) || t.noInput;
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
              <IconButton label={t.rerun} sign="retry" onClick={() => onRun(call.arguments as Values)} />
            </li>
          );
        })}
      </ul>
    </section>
  );
}
