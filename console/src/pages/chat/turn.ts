/** One turn: what the user said goes out, and the reply comes in as a stream that survives: when the connection is lost
 * or the page is loaded again, it is followed from where it was, and ends with the same text. */
import { api, ApiError, hasScope, request, type Page } from "../../lib/api";
import { announce } from "../../lib/announce";
import { perform } from "../../lib/special-action";
import { withAttachments, type Attachment } from "./attachments";
import { branchesAt, pathTo } from "./branches";
import {
  answerOf,
  assistantMessage,
  modeOf,
  newId,
  toFault,
  userMessage,
  type Message,
  type ProviderWait,
  type Settings,
} from "./model";
import { toReplyFields } from "./reply-options";
import { finishReply, applyChunk, restoreCall, type Chunk } from "./reply";
import { events } from "./sse";
import { words } from "./words";
import { addCell, runningReply, type Cell, type Conversation } from "./conversation";

const TRIES = 40;
const QUIET = 12;
const YOUNG_S = 5;
const STOP_MS = 300;
const TITLE = 60;

export async function send(
  conversation: Conversation,
  text: string,
  images: string[],
  attachments: Attachment[] = [],
): Promise<void> {
  if (!conversation.title.peek()) conversation.title.value = titleOf(text || (attachments[0]?.name ?? ""));
  const parent = conversation.cells.peek().at(-1)?.id ?? "";
  await requestReply(conversation, addCell(conversation, { ...userMessage(text, images, attachments), parent }));
}

/** Sends a message again with another text: it begins a branch beside the first one. */
export async function resend(conversation: Conversation, message: Message, text: string): Promise<void> {
  if (conversation.running.peek()) return;
  await requestReply(conversation, addCell(conversation, { ...message, id: newId(), at: Date.now() / 1000, text }));
}

/** Asks for a reply once more: the new one begins a branch beside it. One that brought nothing is replaced. */
export async function regenerate(conversation: Conversation, reply: Message): Promise<void> {
  const all = conversation.all.peek();
  const asked = pathTo(all, reply.parent).findLast((cell) => cell.at.peek().role === "user");
  if (!asked || conversation.running.peek()) return;
  if (!reply.pieces.length && !branchesAt(all, { id: "", parent: reply.id }).length)
    conversation.all.value = all.filter((cell) => cell.id !== reply.id);
  await requestReply(conversation, asked);
}

async function requestReply(conversation: Conversation, asked: Cell): Promise<void> {
  const path = pathTo(conversation.all.peek(), asked.id).map((cell) => cell.at.peek());
  const messages = toRequestMessages(path, conversation.settings.peek());
  const reply = addCell(conversation, {
    ...assistantMessage(conversation.model.peek(), conversation.cursor),
    parent: asked.id,
  });
  conversation.fresh = false;
  conversation.running.value = true;
  await conversation.save();
  try {
    const response = await request("/v1/chat/completions", {
      body: {
        model: conversation.model.peek(),
        messages,
        stream: true,
        stream_options: { include_usage: true },
        ...toReplyFields(conversation.settings.peek()),
        toolyard: toHostOptions(conversation.settings.peek()),
      },
      headers: { Accept: "text/event-stream", "X-Toolyard-Show": "events", "X-Toolyard-Chat": conversation.id },
    });
    const from = Number(response.headers.get("X-Toolyard-Cursor") ?? conversation.cursor);
    if (from !== conversation.cursor) {
      conversation.cursor = from; // the server has forgotten the chat since, or another window has used it
      reply.at.value = { ...reply.at.peek(), cursor: from };
      void conversation.save();
    }
    if (!(await readStream(conversation, reply, response))) await followReply(conversation, reply);
  } catch (error) {
    failReply(reply, error);
  } finally {
    await finishTurn(conversation, reply);
  }
}

/** Follows a reply that was running when this page was opened: from its beginning, as if it had been read here. */
export async function follow(conversation: Conversation): Promise<void> {
  const reply = runningReply(conversation);
  if (!reply || conversation.running.peek()) return;
  conversation.running.value = true;
  const before = reply.at.peek();
  conversation.cursor = before.cursor;
  const { id, parent, at } = before;
  reply.at.value = { ...assistantMessage(before.model, before.cursor), id, parent, at };
  try {
    await followReply(conversation, reply);
  } catch (error) {
    failReply(reply, error);
  } finally {
    await finishTurn(conversation, reply);
  }
}

async function followReply(conversation: Conversation, reply: Cell): Promise<void> {
  let quiet = 0; // times that nothing came: a reply that is about to begin, or one that nobody writes any more
  for (let tries = 0; tries < TRIES && quiet < QUIET; tries++) {
    const before = conversation.cursor;
    try {
      if (
        await readStream(
          conversation,
          reply,
          await request(`/v1/chats/${conversation.id}/stream`, {
            query: { cursor: conversation.cursor },
            headers: { Accept: "text/event-stream" },
          }),
        )
      )
        return;
      quiet = conversation.cursor > before ? 0 : quiet + 1;
    } catch (error) {
      const status = error instanceof ApiError ? error.status : -1;
      if (status === 404 && Date.now() / 1000 - reply.at.peek().at < YOUNG_S) quiet++;
      else if (status === 404) {
        await restoreQuestions(conversation, reply);
        throw new ApiError("", 404, "lost", (error as ApiError).request);
      } else if (status !== 0) throw error;
    }
    const pause = quiet ? 400 : Math.min(5000, 300 * 2 ** tries);
    if (!quiet) reply.at.value = { ...reply.at.peek(), wait: lostConnection(Date.now() + pause) };
    await new Promise((wake) => setTimeout(wake, pause));
  }
  throw new ApiError("", 0, "upstream_cut_off", "");
}

/** Puts the questions of this chat that are still open into a reply that was lost: they outlive the server that asked. */
async function restoreQuestions(conversation: Conversation, reply: Cell): Promise<void> {
  if (!hasScope("approve")) return;
  type Row = { id: string; call_id: string; tool: string; chat: string | null; summary: string };
  const open = await api<Page<Row>>("/v1/approvals?state=pending&limit=200").catch(() => ({ data: [] as Row[] }));
  const message = reply.at.peek();
  const known = new Set(message.pieces.map((piece) => (piece.kind === "call" ? piece.approval : null)));
  const asked = open.data.filter((one) => one.chat === conversation.id && !known.has(one.id));
  const calls = asked.map((one) => restoreCall(one, Date.now()));
  reply.at.value = { ...message, pieces: [...message.pieces, ...calls] };
}

function lostConnection(until: number): ProviderWait {
  const none = { provider: "", code: "", status: null, attempt: 0, attempts: 0, next: "" };
  return { kind: "connection", until: until / 1000, ...none };
}

/** Returns true if the reply has ended, false if the connection was lost before. */
async function readStream(conversation: Conversation, reply: Cell, response: Response): Promise<boolean> {
  let message = reply.at.peek();
  if (message.wait?.kind === "connection") reply.at.value = message = { ...message, wait: null };
  let timer = 0;
  const show = () => {
    timer = 0;
    reply.at.value = withLocalState(message, reply.at.peek());
  };
  try {
    for await (const { id, data } of events(response)) {
      if (id !== null) conversation.cursor = id;
      if (data === "[DONE]") return true;
      const chunk = JSON.parse(data) as Chunk;
      message = applyChunk(withLocalState(message, reply.at.peek()), chunk, Date.now());
      if (Date.now() / 1000 - (chunk.toolyard?.at ?? 0) < YOUNG_S) perform(chunk.toolyard); // not what is read again
      if (message.state === "failed") return true;
      timer ||= window.setTimeout(show, 40); // a few times in a blink, however fast the model is
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // the connection
  } finally {
    clearTimeout(timer);
    reply.at.value = withLocalState(message, reply.at.peek());
  }
  return false;
}

/** Keeps what the user did to calls meanwhile (answered, stopped), which is not in the stream. */
function withLocalState(message: Message, local: Message): Message {
  const marks = new Map(
    local.pieces.flatMap((piece) =>
      piece.kind === "call" && piece.answered ? [[piece.id, piece.answered] as const] : [],
    ),
  );
  if (!marks.size) return message;
  return {
    ...message,
    pieces: message.pieces.map((piece) =>
      piece.kind === "call" && marks.has(piece.id) ? { ...piece, answered: marks.get(piece.id)! } : piece,
    ),
  };
}

function failReply(reply: Cell, error: unknown): void {
  const fault =
    error instanceof ApiError
      ? toFault({
          ...(error.body as { error?: object } | null)?.error,
          message: error.message,
          code: error.code,
          request: error.request,
        })
      : toFault({ message: String(error) });
  reply.at.value = { ...reply.at.peek(), state: "failed", fault };
}

async function finishTurn(conversation: Conversation, reply: Cell): Promise<void> {
  reply.at.value = { ...finishReply(reply.at.peek(), "done", Date.now()), ended: conversation.cursor };
  conversation.running.value = conversation.stopping.value = false;
  announce(reply.at.peek().state === "failed" ? words().replyFailed : words().replyFinished);
  await conversation.save();
}

/** The server may not have heard of the reply yet: the wish is told again for as long as that runs. */
export async function stop(conversation: Conversation): Promise<void> {
  const reply = runningReply(conversation);
  conversation.stopping.value = true;
  while (reply?.at.peek().state === "running") {
    try {
      return void (await api("/v1/interrupt", { body: { chat: conversation.id } }));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) await new Promise((wake) => setTimeout(wake, STOP_MS));
      else {
        conversation.stopping.value = false;
        throw error;
      }
    }
  }
}

/** The messages of the request: the instructions, and the conversation without reasoning and tool calls. The server
 * adds the tools. */
function toRequestMessages(messages: readonly Message[], settings: Settings): object[] {
  const system = [settings.instructions.trim(), hasNoTools(settings.tools) ? "[[VCPToolUse=Forbidden]]" : ""]
    .filter(Boolean)
    .join("\n\n");
  const spoken = messages.flatMap((message): object[] => {
    const text = withAttachments(answerOf(message), message.attachments);
    if (message.role === "assistant") return text ? [{ role: "assistant", content: text }] : [];
    if (!message.images.length) return [{ role: "user", content: text }];
    return [
      {
        role: "user",
        content: [
          ...(text ? [{ type: "text", text }] : []),
          ...message.images.map((url) => ({ type: "image_url", image_url: { url } })),
        ],
      },
    ];
  });
  return [...(system ? [{ role: "system", content: system }] : []), ...spoken];
}

/** Which tools the server offers, what it lets their calls do, whatever the model asks for, and the form of replies. */
function toHostOptions(settings: Settings): object {
  const { tools } = settings,
    mode = modeOf(settings);
  return {
    ...(Array.isArray(tools) ? { tools } : {}),
    ...(mode === "ask" ? {} : { mode }),
    ...(settings.reply === "json" ? { reply: settings.reply } : {}),
  };
}

function hasNoTools(tools: Settings["tools"]): boolean {
  return tools === "none" || (Array.isArray(tools) && !tools.length);
}

function titleOf(text: string): string {
  const line = text.trim().split("\n")[0]!.trim();
  return line.length > TITLE ? `${line.slice(0, TITLE - 1)}…` : line;
}
