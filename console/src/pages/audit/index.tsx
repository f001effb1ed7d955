/** The audit trail: who allowed or changed what, when and from where, and how each run was confined. Newest first. */
import "./style.css";
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { AuditRow } from "toolyard-client";
import { withQuery } from "../../lib/api";
import { useRecords } from "../../lib/resource";
import { queryParam, setQuery } from "../../lib/router";
import { Button } from "../../ui/button";
import { Search } from "../../ui/field";
import { Empty, Fault, Loading } from "../../ui/state";
import { EntryRow } from "./entry";
import { GROUPS } from "./types";
import { groupWords, words } from "./words";

const SPANS: Record<string, number> = { day: 86400, week: 7 * 86400, month: 30 * 86400 };
const RUN = "call.run";
const PAUSE_MS = 250;

export default function AuditPage() {
  const t = words();
  const [text, action, span] = ["q", "action", "since"].map(queryParam) as [string, string, string];
  // Fixed when it is chosen: a border that moved each second would load the list each second.
  const since = useMemo(() => (SPANS[span] ? Math.floor(Date.now() / 1000) - SPANS[span] : null), [span]);
  const only = action === "decisions" ? "decisions" : null;
  const entries = useRecords<AuditRow>(
    withQuery("/v1/audit", { limit: 100, text, since, only, action: only ? null : action }),
    [],
  );
  const filtered = Boolean(text || action || span);
  const clear = () => setQuery({ q: null, action: null, since: null });
  return (
    <div class="page audit">
      <div class="head">
        <h1 class="grow">{t.title}</h1>
        <Button sign="reload" onClick={entries.reload}>
          {t.reload}
        </Button>
      </div>
      <div class="audit-filters">
        <TextFilter />
        <Choice
          name="action"
          label={t.action}
          any={t.anyAction}
          options={[
            ["decisions", t.decisions],
            [RUN, t.runs],
            ...GROUPS.map((group) => [group, groupWords()[group]] as const),
          ]}
        />
        <Choice
          name="since"
          label={t.time}
          any={t.anyTime}
          options={[
            ["day", t.day],
            ["week", t.week],
            ["month", t.month],
          ]}
        />
        {filtered && (
          <Button kind="quiet" sign="close" onClick={clear}>
            {t.clear}
          </Button>
        )}
      </div>
      {entries.error && <Fault error={entries.error} retry={entries.reload} />}
      {entries.state === "loading" && <Loading rows={8} />}
      {entries.rows.length > 0 && (
        <ul class="audit-list" aria-label={t.title}>
          {entries.rows.map((entry) => (
            <EntryRow key={entry.id} entry={entry} />
          ))}
        </ul>
      )}
      {entries.next && (
        <div>
          <Button disabled={entries.busy} onClick={entries.more}>
            {t.more}
          </Button>
        </div>
      )}
      {entries.state === "ready" && !entries.rows.length && (
        <Empty
          sign={filtered ? "search" : "audit"}
          title={filtered ? t.nothing : t.none}
          action={filtered ? <Button onClick={clear}>{t.clear}</Button> : undefined}
        />
      )}
    </div>
  );
}

function Choice({
  name,
  label,
  any,
  options,
}: {
  name: string;
  label: string;
  any: string;
  options: readonly (readonly [string, string])[];
}) {
  return (
    <select
      aria-label={label}
      value={queryParam(name)}
      onInput={(event) => setQuery({ [name]: event.currentTarget.value })}
    >
      <option value="">{any}</option>
      {options.map(([value, word]) => (
        <option key={value} value={value}>
          {word}
        </option>
      ))}
    </select>
  );
}

/** Typed text is written to the address when typing pauses. */
function TextFilter() {
  const there = queryParam("q");
  const typed = useSignal(there);
  const timer = useRef(0);
  useEffect(() => {
    if (!timer.current && typed.peek().trim() !== there) typed.value = there;
  }, [there, typed]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <Search
      label={words().search}
      value={typed.value}
      onInput={(value) => {
        typed.value = value;
        clearTimeout(timer.current);
        timer.current = window.setTimeout(() => {
          timer.current = 0;
          setQuery({ q: value.trim() });
        }, PAUSE_MS);
      }}
    />
  );
}
