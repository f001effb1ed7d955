/** Tasks: what tools still work on after they have answered, and how it ended. */
import type { TaskRow } from "toolyard-client";
import "./style.css";
import { withQuery } from "../../lib/api";
import { isNarrow } from "../../lib/narrow";
import { useRecords, useResource } from "../../lib/resource";
import { setQuery, queryParam, navigate } from "../../lib/router";
import { Button } from "../../ui/button";
import { stateWord } from "../../ui/chip";
import { Empty, Fault, Loading } from "../../ui/state";
import { Tabs } from "../../ui/tabs";
import { VirtualList } from "../../ui/virtual-list";
import { Interrupted } from "./interrupted";
import { Panel } from "./panel";
import { Row } from "./row";
import { taskPath } from "./types";
import { taskWords as words } from "./words";

const STATES = ["waiting_callback", "succeeded", "failed", "timed_out", "cancelled", "interrupted"] as const;

export default function Tasks() {
  const t = words();
  const state = queryParam("state");
  const plugin = queryParam("plugin");
  const list = useRecords<TaskRow>(withQuery("/v1/tasks", { limit: 100, state, plugin }), ["task."], taskPath);
  const counts = useResource<{ by_state: Record<string, number> }>("/v1/tasks/count", ["task."]).value?.by_state;
  const open = queryParam("task");
  const states = STATES.filter((one) => one === state || !counts || counts[one]);
  const total = counts && Object.values(counts).reduce((all, one) => all + one, 0);
  return (
    <div class="page full tsk">
      <div class="head">
        <h1>{t.title}</h1>
      </div>
      <Interrupted />
      <Tabs
        label={t.states}
        open={state || "all"}
        onOpen={(id) => setQuery({ state: id === "all" ? null : id })}
        tabs={[
          { id: "all", name: t.all, count: total || undefined },
          ...states.map((id) => ({ id, name: stateWord(id), count: counts?.[id] || undefined })),
        ]}
      />
      {list.error && <Fault error={list.error} retry={list.reload} />}
      {list.state === "loading" && !list.rows.length ? (
        <Loading rows={6} />
      ) : list.rows.length ? (
        <div class="rec-table">
          <div class="rec-heads tsk-heads" aria-hidden="true">
            <span>{t.task}</span>
            <span>{t.state}</span>
            <span>{t.duration}</span>
            <span>{t.life}</span>
            <span>{t.progress}</span>
          </div>
          <VirtualList
            rows={list.rows}
            height={isNarrow.value ? 92 : 48}
            label={t.title}
            keyOf={(task) => task.id}
            onEnd={list.more}
            draw={(task) => <Row task={task} />}
          />
          {list.busy && (
            <p class="faint rec-more" role="status">
              {t.more}
            </p>
          )}
        </div>
      ) : (
        list.state === "ready" &&
        (state || plugin ? (
          <Empty
            sign="tasks"
            title={t.nothing}
            action={<Button onClick={() => setQuery({ state: null, plugin: null })}>{t.showAll}</Button>}
          />
        ) : (
          <Empty
            sign="tasks"
            title={t.none}
            action={<Button onClick={() => navigate("/tools")}>{t.browseTools}</Button>}
          >
            {t.noneText}
          </Empty>
        ))
      )}
      {open && <Panel key={open} id={open} />}
    </div>
  );
}
