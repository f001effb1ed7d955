// A client for Toolyard's HTTP API: one file without dependencies, for browsers, Node, Deno and Bun.
// Made by `make clients` from the OpenAPI document and clients/typescript/template.ts. Do not edit it by hand.
// Licensed under Apache-2.0, like Toolyard itself.

// {{types}}

/** The result of a call in each dialect. */
export interface DialectResults {
  envelope: Envelope;
  vcp: VcpAnswer;
  backend: BackendMessage;
  openai: OpenAiToolMessage;
  anthropic: AnthropicToolResult;
  mcp: McpToolResult;
}

/** How to reach a server. */
export interface ToolyardSettings {
  /** Its address, `http://127.0.0.1:6005` by default. */
  url?: string | undefined;
  /** A key, as `toolyard config show --key` prints it. */
  key: string;
  /** Another implementation of `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Another implementation of `WebSocket`, such as that of the package `ws`; Node has its own since version 22. */
  WebSocket?: EventSocketConstructor | undefined;
}

/** What is used of a `WebSocket`. Implementations disagree about the types of events, so these are left open. */
export interface EventSocket {
  onmessage: any;
  onclose: any;
  close(): void;
}

export type EventSocketConstructor = new (url: string, protocols: string[]) => EventSocket;

/** What every request may have besides its own options. */
export interface RequestSettings {
  signal?: AbortSignal | undefined;
  headers?: Record<string, string> | undefined;
}

/** The options of a call. */
export interface CallSettings<D extends keyof DialectResults> extends RequestSettings {
  dialect?: D | undefined;
  /** The result as a model sees it, not the full one. */
  shown?: boolean | undefined;
  /** The model's id of the call, for the dialects that name it. */
  toolCallId?: string | undefined;
  /** A name by which the call can be sent again without running twice. */
  idempotencyKey?: string | undefined;
}

/** A message of the back-end stream, and the cursor after which to continue. */
export interface BackendEvent {
  cursor: string;
  message: BackendMessage | { type: "gap" };
}

type Arguments<O extends keyof Operations> =
  {} extends Operations[O]["options"]
    ? [options?: Operations[O]["options"] & RequestSettings]
    : [options: Operations[O]["options"] & RequestSettings];

interface RawOptions extends RequestSettings {
  path?: object;
  query?: object;
  body?: unknown;
}

interface ServerSentEvent {
  id: string;
  name: string;
  data: string;
}

const MAX_QUEUED_EVENTS = 1000; // that nobody has taken; beyond it the connection is closed, and resumed later
const MAX_PAUSE_MS = 30_000;
const FORBIDDEN = 1008; // the close code of a client that may not continue

/** An error that the server answered with. */
export class ToolyardError extends Error {
  /** The HTTP status; 0 for an error inside a stream. */
  readonly status: number;
  /** For programs, such as `not_found`. */
  readonly code: string;
  /** The code of the sentence, to translate it. */
  readonly messageCode: string;

  constructor(message: string, status: number, code: string, messageCode = "") {
    super(message);
    this.name = "ToolyardError";
    this.status = status;
    this.code = code;
    this.messageCode = messageCode;
  }
}

/** A server. */
export class Toolyard {
  readonly url: string;
  readonly #key: string;
  readonly #fetch: typeof globalThis.fetch;
  readonly #WebSocket: EventSocketConstructor | undefined;

  constructor(settings: ToolyardSettings) {
    this.url = (settings.url ?? "http://127.0.0.1:6005").replace(/\/+$/, "");
    this.#key = settings.key;
    this.#fetch = settings.fetch ?? globalThis.fetch.bind(globalThis);
    this.#WebSocket = settings.WebSocket ?? (globalThis as { WebSocket?: EventSocketConstructor }).WebSocket;
  }

  /** Send any request of the API, such as `request("GET /v1/tools/{name}", { path: { name: "LS" } })`. */
  async request<O extends keyof Operations>(operation: O, ...[options]: Arguments<O>): Promise<Operations[O]["result"]> {
    const response = await this.#send(operation, options ?? {});
    const kind = response.headers.get("content-type") ?? "";
    if (kind.startsWith("application/json")) return (await response.json()) as Operations[O]["result"];
    if (kind.startsWith("text/event-stream")) return response as unknown as Operations[O]["result"];
    const body = kind.startsWith("text/") ? await response.text() : await response.blob();
    return body as unknown as Operations[O]["result"];
  }

  /** Call a tool. A failed tool is an envelope with an `error`, and no exception. */
  async call<D extends keyof DialectResults = "envelope">(
    tool: string,
    args: Record<string, unknown> = {},
    options: CallSettings<D> = {},
  ): Promise<DialectResults[D]> {
    const { dialect, shown, toolCallId, idempotencyKey, signal, headers } = options;
    const response = await this.#send("POST /v1/tools/{name}", {
      path: { name: tool },
      query: { dialect, shown, tool_call_id: toolCallId },
      body: args,
      headers: idempotencyKey === undefined ? headers : { ...headers, "Idempotency-Key": idempotencyKey },
      signal,
    });
    return (await response.json()) as DialectResults[D];
  }

  /** Complete a chat; the server runs the tools that the model calls. */
  async chat(request: ChatRequest, settings: RequestSettings = {}): Promise<ChatCompletion> {
    return this.request("POST /v1/chat/completions", { body: { ...request, stream: false }, ...settings });
  }

  /** Complete a chat, piece by piece. */
  async *streamChat(request: ChatRequest, settings: RequestSettings = {}): AsyncGenerator<ChatCompletionChunk> {
    const body = { ...request, stream: true };
    yield* readChunks(await this.#send("POST /v1/chat/completions", { body, ...settings }));
  }

  /** Follow the running reply of a chat that has an id, from its beginning or after a cursor. */
  async *followChat(
    id: string,
    settings: { cursor?: number | undefined } & RequestSettings = {},
  ): AsyncGenerator<ChatCompletionChunk> {
    const { cursor, ...rest } = settings;
    yield* readChunks(await this.#send("GET /v1/chats/{id}/stream", { path: { id }, query: { cursor }, ...rest }));
  }

  /** Follow the calls that end, as messages for a back end. */
  async *backendMessages(settings: { cursor?: string | undefined } & RequestSettings = {}): AsyncGenerator<BackendEvent> {
    const { cursor, ...rest } = settings;
    const response = await this.#send("GET /v1/backend/stream", { query: { cursor }, ...rest });
    for await (const event of readEvents(response)) {
      yield { cursor: event.id, message: JSON.parse(event.data) as BackendEvent["message"] };
    }
  }

  /**
   * Follow the events of the server: new ones, or all after a cursor. A lost connection is made anew where it broke off,
   * so that each event comes once; a `gap` says that events are no longer stored. It ends when `signal` is aborted.
   */
  async *events(settings: { cursor?: number; signal?: AbortSignal } = {}): AsyncGenerator<ServerEvent> {
    const { signal } = settings;
    if (this.#WebSocket === undefined) throw new TypeError("there is no WebSocket here: pass one to new Toolyard()");
    let cursor = settings.cursor ?? (await this.request("GET /v1/session", { signal })).cursor ?? undefined;
    for (let failures = 0; !signal?.aborted; ) {
      try {
        for await (const event of this.#connect(this.#WebSocket, cursor, signal)) {
          failures = 0;
          cursor = event.seq;
          yield event;
          if (signal?.aborted) return; // more may have arrived meanwhile
        }
      } catch (error) {
        if (error instanceof ToolyardError && error.status < 500 && error.status !== 429) throw error;
        if (signal?.aborted) return;
      }
      await pause(Math.min(MAX_PAUSE_MS, 250 * 2 ** failures++) * (0.5 + Math.random() / 2), signal);
    }
  }

  async *#connect(
    Socket: EventSocketConstructor,
    cursor: number | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ServerEvent> {
    const { ticket } = await this.request("POST /ws-ticket", { signal });
    const query = cursor === undefined ? "" : `?cursor=${cursor}`;
    const socket = new Socket(`${this.url.replace(/^http/, "ws")}/ws${query}`, ["bearer", ticket]);
    const queue: ServerEvent[] = [];
    let closed: { code: number; reason: string } | undefined;
    let wake = (): void => {};
    const abort = (): void => socket.close();
    socket.onmessage = (message: { data: string }) => {
      if (queue.length >= MAX_QUEUED_EVENTS) return socket.close();
      queue.push(JSON.parse(message.data) as ServerEvent);
      wake();
    };
    socket.onclose = (event: { code: number; reason: string }) => {
      closed = event;
      wake();
    };
    signal?.addEventListener("abort", abort);
    try {
      for (;;) {
        for (let event = queue.shift(); event !== undefined; event = queue.shift()) yield event;
        if (closed !== undefined) break;
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (queue.length > 0 || closed !== undefined) resolve();
        });
      }
      if (closed.code === FORBIDDEN) throw new ToolyardError(closed.reason || "the session has ended", 403, "closed");
    } finally {
      signal?.removeEventListener("abort", abort);
      socket.close();
    }
  }

  async #send(operation: keyof Operations, options: RawOptions): Promise<Response> {
    const [method = "GET", template = "/"] = operation.split(" ");
    const parts = (options.path ?? {}) as Record<string, unknown>;
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(parts[name])));
    const query = writeQuery(options.query ?? {});
    const headers: Record<string, string> = { ...options.headers, Authorization: `Bearer ${this.#key}` };
    const isRaw = ["Blob", "FormData", "String", "URLSearchParams"].includes(
      Object.prototype.toString.call(options.body).slice(8, -1),
    );
    if (options.body !== undefined && !isRaw) headers["Content-Type"] = "application/json";
    const response = await this.#fetch(this.url + path + query, {
      method,
      headers,
      redirect: "manual",
      ...(options.signal ? { signal: options.signal } : {}),
      ...(options.body === undefined ? {} : { body: isRaw ? (options.body as string) : JSON.stringify(options.body) }),
    });
    if (response.status >= 400) throw await readError(response);
    return response;
  }
}

function writeQuery(query: object): string {
  const written = new URLSearchParams();
  for (const [name, value] of Object.entries(query) as [string, unknown][]) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (one !== undefined && one !== null) written.append(name, String(one));
    }
  }
  return written.size > 0 ? `?${written.toString()}` : "";
}

async function readError(response: Response): Promise<ToolyardError> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as ErrorBody;
    return new ToolyardError(error.message, response.status, error.code ?? "", error.message_code);
  } catch {
    return new ToolyardError(text || response.statusText, response.status, "");
  }
}

async function* readChunks(response: Response): AsyncGenerator<ChatCompletionChunk> {
  for await (const event of readEvents(response)) {
    if (event.data === "[DONE]") return;
    const chunk = JSON.parse(event.data) as ChatCompletionChunk | ErrorBody;
    if ("error" in chunk) {
      const { error } = chunk as ErrorBody;
      throw new ToolyardError(error.message, 0, error.code, error.message_code);
    }
    yield chunk as ChatCompletionChunk;
  }
}

async function* readEvents(response: Response): AsyncGenerator<ServerSentEvent> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      rest = events.pop() ?? "";
      for (const event of events) {
        const read = readEvent(event);
        if (read.data !== "") yield read;
      }
    }
  } finally {
    await reader.cancel();
  }
}

function readEvent(text: string): ServerSentEvent {
  const event: ServerSentEvent = { id: "", name: "message", data: "" };
  for (const line of text.split(/\r?\n/)) {
    const [, field, value = ""] = /^(\w+): ?(.*)$/s.exec(line) ?? [];
    if (field === "data") event.data += event.data === "" ? value : `\n${value}`;
    else if (field === "id") event.id = value;
    else if (field === "event") event.name = value;
  }
  return event;
}

async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(finish, milliseconds);
    function finish(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", finish);
      resolve();
    }
    signal?.addEventListener("abort", finish);
  });
}
