/** The runs of each tool in this window. They go on, and their results stay, while a person looks at another tool. */
import { signal } from "@preact/signals";
import type { CallDetail, Envelope, McpToolResult } from "toolyard-client";
import { api, ApiError, hasScope, request } from "../../lib/api";
import { canvasIn, perform } from "../../lib/special-action";
import { loadMedia, type Media } from "../../ui/outcome/call-media";
import { decodePart } from "../../lib/uri";
import type { Values } from "../../ui/schema-form";

export interface Run {
  id: string;
  state: "running" | "ended" | "fault";
  began: number;
  ended: number;
  stopping: boolean;
  envelope: Envelope | null;
  media: Media[];
  error: ApiError | null;
  /** The file that it asked to open, or empty. */
  canvas: string;
  stop: () => Promise<void>;
}

interface Part {
  type: string;
  data?: string;
  mimeType?: string;
  resource?: { uri?: string; mimeType?: string; blob?: string };
}

const FOLLOW_MS = 1000;
export const runs = signal<Readonly<Record<string, Run>>>({});

function addRun(tool: string, run: Run): void {
  runs.value = { ...runs.value, [tool]: run };
}

/** Change the run of a tool, unless another one has begun since. */
function updateRun(tool: string, run: Run, changes: Partial<Run>): void {
  const now = runs.value[tool];
  if (now && now.began === run.began) addRun(tool, { ...now, ...changes });
}

/** Run a tool. An owner chooses the id of the call, so that it can be stopped and found by it; others stop by going
 * away. `retryOf` is the call whose input this one began with, or empty. */
export async function start(tool: string, input: Values, retryOf: string): Promise<void> {
  const id = hasScope("admin") ? freshId() : "";
  const gone = new AbortController();
  const stop = async () => {
    updateRun(tool, run, { stopping: true });
    const isStopSent = id
      ? await api(`/v1/calls/${id}/cancel`, { method: "POST", body: {} }).then(
          () => true,
          () => false,
        )
      : false;
    if (!isStopSent) gone.abort();
  };
  const run: Run = {
    id,
    state: "running",
    began: Date.now() + Math.random(),
    ended: 0,
    stopping: false,
    envelope: null,
    media: [],
    error: null,
    canvas: "",
    stop,
  };
  addRun(tool, run);
  try {
    // The dialect of MCP has the envelope, and beside it what an envelope cannot hold: pictures and sounds.
    const response = await request(`/v1/tools/${encodeURIComponent(tool)}`, {
      body: input,
      query: { dialect: "mcp", codes: true, call_id: id, retry_of: retryOf },
      signal: gone.signal,
    });
    const answer = (await response.json()) as McpToolResult;
    const { "toolyard/envelope": envelope, "toolyard/specialAction": action } = answer._meta;
    perform(action);
    updateRun(tool, run, {
      state: "ended",
      ended: Date.now(),
      id: response.headers.get("X-Call-Id") ?? id,
      envelope,
      media: mediaOf(answer.content),
      canvas: canvasIn(action),
    });
  } catch (error) {
    const shownError =
      error instanceof ApiError
        ? error
        : new ApiError(gone.signal.aborted ? "" : String(error), 0, gone.signal.aborted ? "stopped" : "", "");
    updateRun(tool, run, { state: "fault", ended: Date.now(), error: shownError });
  }
}

/** Show a call that began before: its result, or that it still runs, and then its result. */
export function restoreRun(tool: string, call: CallDetail): void {
  const stop = async () => {
    updateRun(tool, run, { stopping: true });
    await api(`/v1/calls/${encodeURIComponent(call.id)}/cancel`, { method: "POST", body: {} });
  };
  const run: Run = {
    id: call.id,
    state: call.ended ? "ended" : "running",
    began: call.started * 1000,
    ended: (call.ended ?? 0) * 1000,
    stopping: false,
    envelope: call.envelope ?? null,
    media: [],
    error: null,
    canvas: canvasIn(call),
    stop,
  };
  addRun(tool, run);
  void loadMedia(call.id, call.envelope).then((media) => updateRun(tool, run, { media }));
  if (!call.ended) setTimeout(() => void follow(tool, run), FOLLOW_MS);
}

/** Looks after a call that others began, for as long as it is the one that is shown. */
async function follow(tool: string, run: Run): Promise<void> {
  if (runs.peek()[tool]?.began !== run.began) return;
  const call = await api<CallDetail>(`/v1/calls/${encodeURIComponent(run.id)}`).catch(() => null);
  if (runs.peek()[tool]?.began !== run.began) return;
  if (call?.ended) restoreRun(tool, call);
  else setTimeout(() => void follow(tool, run), FOLLOW_MS);
}

function freshId(): string {
  return `call_${[...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

function mediaOf(parts: readonly Part[]): Media[] {
  return parts.flatMap((part): Media[] => {
    if (part.data && part.mimeType) return [{ mime: part.mimeType, data: part.data, name: "" }];
    const { blob, mimeType, uri = "" } = part.resource ?? {};
    return blob && mimeType ? [{ mime: mimeType, data: blob, name: decodePart(uri.split("/").pop() ?? "") }] : [];
  });
}
