/** Activity: every call as it happens. What runs stands on top; all else is one long list, newest first. */
import "./style.css";
import { useEffect, useMemo } from "preact/hooks";
import { lazyPage, loadAhead } from "../../lib/lazy-page";
import { isNarrow } from "../../lib/narrow";
import { setQuery, queryParam, navigate } from "../../lib/router";
import { Button } from "../../ui/button";
import { Empty, Fault, Loading } from "../../ui/state";
import { VirtualList } from "../../ui/virtual-list";
import { Filters } from "./filters";
import { filtersIn } from "./query";
import { Row } from "./row";
import { FILTERS, useCalls } from "./use-calls";
import { activityWords as words } from "./words";

const Panel = lazyPage<{ id: string }>(() => import("./panel").then((module) => ({ default: module.Panel })));

export default function Activity() {
  useEffect(() => loadAhead([Panel.load]), []);
  const t = words();
  const calls = useCalls();
  const callers = useMemo(() => [...new Set(calls.rows.map((row) => row.caller))].slice(0, 50), [calls.rows]);
  const open = queryParam("call");
  useTypedFilters();
  return (
    <div class="page full act">
      <div class="head">
        <h1>{t.title}</h1>
        <span class="grow" />
        {calls.paused && calls.newCount > 0 && (
          <span class="act-new-calls tabular" role="status">
            {calls.atMost ? t.newCallsAtMost(calls.newCount) : t.newCalls(calls.newCount)}
          </span>
        )}
        <Button
          sign={calls.paused ? "resume" : "pause"}
          pressed={calls.paused}
          onClick={() => calls.pause(!calls.paused)}
        >
          {calls.paused ? t.resume : t.pause}
        </Button>
      </div>
      <Filters callers={callers} />
      {calls.error && <Fault error={calls.error} retry={calls.reload} />}
      {calls.state === "loading" && !calls.visibleCalls.length ? (
        <Loading rows={8} />
      ) : calls.visibleCalls.length ? (
        <div
          class={`rec-table act-table${calls.rows.some((row) => typeof row.bytes_out === "number") ? "" : " unsized"}`}
        >
          <div class="rec-heads act-heads" aria-hidden="true">
            <span>{t.time}</span>
            <span>{t.who}</span>
            <span>{t.what}</span>
            <span>{t.state}</span>
            <span>{t.elapsed}</span>
            <span>{t.size}</span>
          </div>
          <VirtualList
            rows={calls.visibleCalls}
            height={isNarrow.value ? 66 : 44}
            label={t.calls}
            keyOf={(call) => call.id}
            onEnd={calls.more}
            draw={(call) => <Row call={call} />}
          />
          {calls.busy && (
            <p class="faint rec-more" role="status">
              {t.more}
            </p>
          )}
        </div>
      ) : (
        calls.state === "ready" &&
        (calls.filtered ? (
          <Empty
            sign="search"
            title={t.nothing}
            action={
              <Button onClick={() => setQuery(Object.fromEntries(FILTERS.map((key) => [key, null])))}>{t.clear}</Button>
            }
          />
        ) : (
          <Empty
            sign="activity"
            title={t.none}
            action={<Button onClick={() => navigate("/tools")}>{t.tryTool}</Button>}
          >
            {t.noneText}
          </Empty>
        ))
      )}
      {open && <Panel key={open} id={open} />}
    </div>
  );
}

/** A link may have the filters in its text, as they are typed in the search: `?q=code:NOT_FOUND`. */
function useTypedFilters(): void {
  const text = queryParam("q");
  useEffect(() => {
    const typed = filtersIn(text);
    if (typed) setQuery(typed);
  }, [text]);
}
