/** What only the server knows. Tools and settings are asked for when the finder opens. Conversations, calls, tasks and
 * schedules are asked for when typing pauses: a few of each, and no longer once something else is typed. */
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { CallRow, FoundConversation, ScheduleRow, SettingRow, SettingsDetail, TaskRow } from "toolyard-client";
import { api, hasScope, withQuery, type Page } from "../lib/api";
import { callerFromName, callerName } from "../lib/caller";
import { formatRelative } from "../lib/clock";
import { isWaiting } from "../lib/counters";
import { isErrorCode } from "../lib/error-codes";
import { pickText } from "../lib/language";
import { messageIn, messageText } from "../lib/messages";
import { parseMoment, parseQuery, KEYS } from "../pages/activity/query";
import { callPath, nameOf as callName, stateOf, titleOf as callTitle } from "../pages/activity/types";
import { summary } from "../pages/schedule/types";
import { subjectOf, taskPath, titleOf as taskTitle } from "../pages/tasks/types";
import { titleOf, type Translated } from "../pages/tools/translation";
import { stateWord } from "../ui/chip";
import type { Entry } from "./entry";
import { rankOf } from "./rank";
import { finderWords } from "./words";

const PAUSE_MS = 180;
const MOST = 5;
/** Tasks and schedules are few and have no search of their own: so many of the newest are looked through. */
const NEWEST = 100;
const CALL_ID = /^call_[0-9a-f]{32}$/;
const TASK_ID = /^task_[0-9a-f]{32}$/;

interface Named extends Translated {
  plugin?: string | null;
  tools?: string[];
}

/** Kept for the next time: then they are there at once, and brought up to date. */
const tools = signal<readonly Named[]>([]);

export function useTools(): Entry[] {
  useEffect(() => {
    const list = (path: string) =>
      api<{ data: Named[] }>(path).then(
        (all) => all.data,
        () => [],
      );
    void Promise.all([list("/v1/tool-summaries"), list("/v1/plugins")]).then(([all, plugins]) => {
      const named = new Set(all.map((one) => one.name));
      tools.value = [...all, ...plugins.filter((one) => !one.tools?.length && !named.has(one.name))];
    });
  }, []);
  return tools.value.map((tool) => {
    const title = titleOf(tool);
    const translated = Object.values(tool.translations).map((one) => one.display_name);
    return {
      id: `tool ${tool.name}`,
      kind: "tool",
      sign: "tools",
      title,
      detail: title === tool.name ? undefined : tool.name,
      names: [tool.name, tool.display_name, ...translated].filter(Boolean),
      given: true,
      href: `/tools/${encodeURIComponent(tool.name)}`,
    };
  });
}

/** Kept like the tools. */
const settings = signal<readonly SettingRow[]>([]);

export function useSettings(): Entry[] {
  useEffect(() => {
    if (!hasScope("admin")) return;
    api<SettingsDetail>("/v1/settings").then(
      (all) => void (settings.value = all.settings),
      () => undefined,
    );
  }, []);
  return settings.value.map(({ name, title, title_zh }) => ({
    id: `setting ${name}`,
    kind: "setting",
    sign: "settings",
    title: pickText(title, title_zh),
    detail: name,
    names: [name, title, title_zh],
    href: `/settings?setting=${name}`,
  }));
}

export interface Lookup {
  entries: Entry[];
  /** The text that they belong to. */
  text: string;
  busy: boolean;
}

export function useLookup(text: string): Lookup {
  const found = useSignal<{ entries: Entry[]; text: string }>({ entries: [], text: "" });
  const typed = text.trim();
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(
      () => {
        void lookUp(typed, stop.signal).then((entries) => {
          if (!stop.signal.aborted) found.value = { entries, text: typed };
        });
      },
      typed ? PAUSE_MS : 0,
    );
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [found, typed]);
  return { ...found.value, busy: found.value.text !== typed };
}

async function lookUp(text: string, stop: AbortSignal): Promise<Entry[]> {
  const isLong = text.length > 1 || /\p{Script=Han}/u.test(text);
  if (text && !isLong) return [];
  const filters = KEYS.some((key) => parseQuery(text).query[key]);
  const looks = [
    ...(hasScope("chat") && !filters ? [findConversations(text, stop)] : []),
    ...(hasScope("tools") && text ? [findCalls(text, stop)] : []),
    ...(hasScope("tools") && text && !filters ? [findTasks(text, stop), findSchedules(text, stop)] : []),
  ];
  // One that cannot answer, or may not, leaves the others alone.
  return (await Promise.all(looks.map((look) => look.catch(() => [])))).flat();
}

async function findConversations(search: string, signal: AbortSignal): Promise<Entry[]> {
  const page = await api<Page<FoundConversation>>(withQuery("/v1/conversations", { search, limit: MOST }), { signal });
  return page.data.map((one) => ({
    id: `chat ${one.id}`,
    kind: "chat",
    sign: "chat",
    title: one.title || finderWords().untitled,
    detail: one.snippet || formatRelative(one.updated),
    names: [one.title],
    given: true,
    href: `/chat/${encodeURIComponent(one.id)}${one.message_id ? `?at=${encodeURIComponent(one.message_id)}` : ""}`,
  }));
}

async function findCalls(text: string, signal: AbortSignal): Promise<Entry[]> {
  if (CALL_ID.test(text)) return [toCallEntry(await api<CallRow>(callPath(text), { signal }))];
  const code = text.toUpperCase().replaceAll(/[ -]/g, "_");
  const page = await api<Page<CallRow>>(
    withQuery("/v1/calls", { limit: MOST, ...(isErrorCode(code) ? { code } : toCallQuery(text)) }),
    { signal },
  );
  return page.data.map(toCallEntry);
}

function toCallQuery(text: string) {
  const { query } = parseQuery(text);
  const moment = (said: string) => (said ? parseMoment(said, new Date()) : null);
  return {
    search: query.q,
    tool: query.tool,
    code: query.code.split(",").filter(Boolean),
    state: query.state.split(",").filter(Boolean),
    caller: query.caller && callerFromName(query.caller),
    since: moment(query.since),
    before: moment(query.before),
  };
}

function toCallEntry(call: CallRow): Entry {
  const waits = call.state === "running" && isWaiting(call.id);
  const state = call.error ? (call.reason ?? call.error.code) : stateWord(waits ? "approval" : stateOf(call));
  return {
    id: `call ${call.id}`,
    kind: "call",
    sign: "activity",
    title: callTitle(call),
    detail: `${state} · ${callerName(call.caller)} · ${formatRelative(call.started)}`,
    names: [call.id, callName(call)],
    given: true,
    href: `/activity?call=${encodeURIComponent(call.id)}`,
  };
}

async function findTasks(text: string, signal: AbortSignal): Promise<Entry[]> {
  const tasks = TASK_ID.test(text)
    ? [await api<TaskRow>(taskPath(text), { signal })]
    : (await api<Page<TaskRow>>(withQuery("/v1/tasks", { limit: NEWEST }), { signal })).data;
  return tasks
    .filter((task) =>
      rankOf(
        [
          task.plugin,
          task.task_id,
          task.id,
          subjectOf(task),
          task.message ?? "",
          messageText(messageIn(task, "message")),
        ],
        text,
      ),
    )
    .slice(0, MOST)
    .map((task) => ({
      id: `task ${task.id}`,
      kind: "task",
      sign: "tasks",
      title: taskTitle(task),
      detail: `${stateWord(task.state)} · ${formatRelative(task.created)}`,
      names: [],
      given: true,
      href: `/tasks?task=${encodeURIComponent(task.id)}`,
    }));
}

async function findSchedules(text: string, signal: AbortSignal): Promise<Entry[]> {
  const page = await api<Page<ScheduleRow>>(withQuery("/v1/schedules", { limit: NEWEST }), { signal });
  return page.data
    .filter((one) => rankOf([one.tool, one.id, summary(one.arguments)], text))
    .slice(0, MOST)
    .map((one) => ({
      id: `schedule ${one.id}`,
      kind: "schedule",
      sign: "schedule",
      title: one.tool,
      detail: `${stateWord(one.condition)} · ${summary(one.arguments)}`,
      names: [],
      given: true,
      href: `/schedule?schedule=${encodeURIComponent(one.id)}`,
    }));
}
