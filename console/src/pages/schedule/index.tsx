/** Schedule: what will run and when, what was missed and why, what has run. */
import type { ScheduleRow } from "toolyard-client";
import "./style.css";
import { withQuery } from "../../lib/api";
import { useRecords } from "../../lib/resource";
import { setQuery, queryParam } from "../../lib/router";
import { Button } from "../../ui/button";
import { Empty, Fault, Loading } from "../../ui/state";
import { Tabs } from "../../ui/tabs";
import { Form } from "./form";
import { Panel } from "./panel";
import { Row } from "./row";
import { Strip } from "./strip";
import { schedulePath, TABS, type Tab } from "./types";
import { useUpcoming } from "./use-upcoming";
import { dayOf } from "./when";
import { scheduleWords as words } from "./words";

export default function SchedulePage() {
  const t = words();
  const tab = (queryParam("tab") in TABS ? queryParam("tab") : "next") as Tab;
  const upcoming = useRecords<ScheduleRow>(
    withQuery("/v1/schedules", { limit: 200, state: TABS.next }),
    ["schedule.", "approval."],
    schedulePath,
  );
  const coming = useUpcoming(upcoming.rows);
  const zone = upcoming.rows[0]?.zone;
  const open = queryParam("schedule");
  const form = queryParam("form");
  return (
    <div class="page sch">
      <div class="head">
        <h1>{t.title}</h1>
        <span class="grow" />
        <Button kind="primary" sign="plus" onClick={() => setQuery({ form: "new" }, false)}>
          {t.add}
        </Button>
      </div>
      <Strip coming={coming} zone={zone} />
      <Tabs
        label={t.views}
        open={tab}
        onOpen={(id) => setQuery({ tab: id === "next" ? null : id, day: null })}
        tabs={[
          { id: "next", name: t.next, count: upcoming.rows.length || undefined },
          { id: "missed", name: t.missed },
          { id: "past", name: t.past },
        ]}
      />
      {tab === "next" ? (
        <UpcomingList
          list={upcoming}
          days={
            new Set(coming.filter((one) => dayOf(one.at, zone) === queryParam("day")).map((one) => one.schedule.id))
          }
        />
      ) : (
        <EndedList key={tab} tab={tab} />
      )}
      {open && <Panel key={open} id={open} />}
      {form && <Form key={form} form={form} />}
    </div>
  );
}

type List = ReturnType<typeof useRecords<ScheduleRow>>;

function UpcomingList({ list, days }: { list: List; days: ReadonlySet<string> }) {
  const t = words();
  const day = queryParam("day");
  const rows = [...list.rows]
    .filter((row) => !day || days.has(row.id))
    .sort((a, b) => compare(order(a), order(b)) || a.created - b.created);
  return (
    <Rows
      list={list}
      rows={rows}
      empty={
        day ? (
          <Empty
            sign="schedule"
            title={t.dayNone}
            action={<Button onClick={() => setQuery({ day: null })}>{t.allDays}</Button>}
          />
        ) : (
          <Empty
            sign="schedule"
            title={t.none}
            action={
              <Button kind="primary" sign="plus" onClick={() => setQuery({ form: "new" }, false)}>
                {t.add}
              </Button>
            }
          >
            {t.noneText}
          </Empty>
        )
      }
    />
  );
}

/** Running and waiting schedules come first, then the next ones; paused ones come last. */
function order(one: ScheduleRow): number {
  return one.state === "running" ? -Infinity : (one.due ?? Infinity);
}

/** Also of two that are infinite. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

function EndedList({ tab }: { tab: "missed" | "past" }) {
  const t = words();
  const list = useRecords<ScheduleRow>(
    withQuery("/v1/schedules", { limit: 50, state: TABS[tab] }),
    ["schedule."],
    schedulePath,
  );
  return (
    <Rows
      list={list}
      rows={list.rows}
      empty={
        tab === "missed" ? (
          <Empty sign="check" title={t.missedNone}>
            {t.missedNoneText}
          </Empty>
        ) : (
          <Empty sign="schedule" title={t.pastNone} />
        )
      }
    />
  );
}

function Rows({ list, rows, empty }: { list: List; rows: readonly ScheduleRow[]; empty: preact.ComponentChildren }) {
  const t = words();
  return (
    <>
      {list.error && <Fault error={list.error} retry={list.reload} />}
      {list.state === "loading" && !list.rows.length ? (
        <Loading rows={4} />
      ) : rows.length ? (
        <ul class="sch-list" aria-label={t.list}>
          {rows.map((one) => (
            <Row key={one.id} one={one} />
          ))}
        </ul>
      ) : (
        list.state === "ready" && empty
      )}
      {list.next && (
        <div>
          <Button disabled={list.busy} onClick={list.more}>
            {t.more}
          </Button>
        </div>
      )}
    </>
  );
}
