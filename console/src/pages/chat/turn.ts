/** One turn: what the user said goes out, and the reply comes in as a stream that survives: when the connection is lost
 * or the page is loaded again, it is followed from where it was, and ends with the same text. */
import { api, ApiError, request } from "../../lib/api";
import { answerOf, begun, modeOf, said, type Message, type Settings } from "./model";
import { ended, take, type Chunk } from "./reply";
import { events } from "./sse";
import { cell, messagesOf, type Cell, type Talk } from "./talk";

const TRIES = 40;
const QUIET = 12;
const YOUNG_S = 5;
const STOP_MS = 300;
const TITLE = 60;

export async function send(talk: Talk, text: string, images: string[]): Promise<void> {
  if (!talk.title.peek()) talk.title.value = titleOf(text);
  talk.cells.value = [...talk.cells.peek(), cell(said(text, images))];
  await answer(talk);
}

/** The last reply again: it goes, and the same is asked once more. */
export async function again(talk: Talk): Promise<void> {
  const cells = [...talk.cells.peek()];
  while (cells.length && cells[cells.length - 1]!.at.peek().role === "assistant") cells.pop();
  if (!cells.length || talk.running.peek()) return;
  talk.cells.value = cells;
  await answer(talk);
}

async function answer(talk: Talk): Promise<void> {
  const messages = outgoing(messagesOf(talk), talk.settings.peek());
  const reply = cell(begun(talk.model.peek(), talk.cursor));
  talk.fresh = false;
  talk.running.value = true;
  talk.cells.value = [...talk.cells.peek(), reply];
  await talk.keep();
  try {
    const response = await request("/v1/chat/completions", {
      body: {
        model: talk.model.peek(),
        messages,
        stream: true,
        stream_options: { include_usage: true },
        toolyard: bounds(talk.settings.peek()),
      },
      headers: { Accept: "text/event-stream", "X-Toolyard-Show": "events", "X-Toolyard-Chat": talk.id },
    });
    const from = Number(response.headers.get("X-Toolyard-Cursor") ?? talk.cursor);
    if (from !== talk.cursor) {
      talk.cursor = from; // the server has forgotten the chat since, or another window has used it
      reply.at.value = { ...reply.at.peek(), cursor: from };
      void talk.keep();
    }
    if (!(await read(talk, reply, response))) await followed(talk, reply);
  } catch (error) {
    fail(reply, error);
  } finally {
    await close(talk, reply);
  }
}

/** A reply that was running when this page was opened: from its beginning, as if it had been read here. */
export async function follow(talk: Talk): Promise<void> {
  const reply = talk.cells.peek().at(-1);
  if (!reply || talk.running.peek()) return;
  talk.running.value = true;
  const before = reply.at.peek();
  talk.cursor = before.cursor;
  reply.at.value = { ...begun(before.model, before.cursor), id: before.id, at: before.at };
  try {
    await followed(talk, reply);
  } catch (error) {
    fail(reply, error);
  } finally {
    await close(talk, reply);
  }
}

async function followed(talk: Talk, reply: Cell): Promise<void> {
  let quiet = 0; // times that nothing came: a reply that is about to begin, or one that nobody writes any more
  for (let tries = 0; tries < TRIES && quiet < QUIET; tries++) {
    const before = talk.cursor;
    try {
      if (
        await read(
          talk,
          reply,
          await request(`/v1/chats/${talk.id}/stream`, {
            query: { cursor: talk.cursor },
            headers: { Accept: "text/event-stream" },
          }),
        )
      )
        return;
      quiet = talk.cursor > before ? 0 : quiet + 1;
    } catch (error) {
      const status = error instanceof ApiError ? error.status : -1;
      if (status === 404 && Date.now() / 1000 - reply.at.peek().at < YOUNG_S) quiet++;
      else if (status === 404) throw new ApiError("", 404, "lost", (error as ApiError).request);
      else if (status !== 0) throw error;
    }
    await new Promise((wake) => setTimeout(wake, quiet ? 400 : Math.min(5000, 300 * 2 ** tries)));
  }
  throw new ApiError("", 0, "upstream_cut_off", "");
}

/** Whether the reply has come to its end; false when the connection was lost before. */
async function read(talk: Talk, reply: Cell, response: Response): Promise<boolean> {
  let message = reply.at.peek();
  let timer = 0;
  const show = () => {
    timer = 0;
    reply.at.value = answered(message, reply.at.peek());
  };
  try {
    for await (const { id, data } of events(response)) {
      if (id !== null) talk.cursor = id;
      if (data === "[DONE]") return true;
      message = take(answered(message, reply.at.peek()), JSON.parse(data) as Chunk, Date.now());
      if (message.state === "failed") return true;
      timer ||= window.setTimeout(show, 40); // a few times in a blink, however fast the model is
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // the connection
  } finally {
    clearTimeout(timer);
    reply.at.value = answered(message, reply.at.peek());
  }
  return false;
}

/** What a person did to calls meanwhile (answered, stopped) is not in the stream. */
function answered(message: Message, shown: Message): Message {
  const marks = new Map(
    shown.pieces.flatMap((piece) =>
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

function fail(reply: Cell, error: unknown): void {
  const fault =
    error instanceof ApiError
      ? { code: error.code, message: error.message, request: error.request }
      : { code: "", message: String(error), request: "" };
  reply.at.value = { ...reply.at.peek(), state: "failed", fault };
}

async function close(talk: Talk, reply: Cell): Promise<void> {
  reply.at.value = { ...ended(reply.at.peek(), "done", Date.now()), ended: talk.cursor };
  talk.running.value = talk.stopping.value = false;
  await talk.keep();
}

/** The server may not have heard of the reply yet: the wish is told again for as long as that runs. */
export async function stop(talk: Talk): Promise<void> {
  const reply = talk.cells.peek().at(-1);
  talk.stopping.value = true;
  while (reply?.at.peek().state === "running") {
    try {
      return void (await api("/v1/interrupt", { body: { chat: talk.id } }));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) await new Promise((wake) => setTimeout(wake, STOP_MS));
      else {
        talk.stopping.value = false;
        throw error;
      }
    }
  }
}

/** What the model gets: what it is told, and the conversation without thinking and tool work. The server adds the tools. */
function outgoing(messages: readonly Message[], settings: Settings): object[] {
  const system = [settings.instructions.trim(), hasNoTools(settings.tools) ? "[[VCPToolUse=Forbidden]]" : ""]
    .filter(Boolean)
    .join("\n\n");
  const spoken = messages.flatMap((message): object[] => {
    const text = answerOf(message);
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

/** Which tools the server offers, and what it lets their calls do, whatever the model asks for. */
function bounds(settings: Settings): object {
  const { tools } = settings,
    mode = modeOf(settings);
  return { ...(Array.isArray(tools) ? { tools } : {}), ...(mode === "ask" ? {} : { mode }) };
}

function hasNoTools(tools: Settings["tools"]): boolean {
  return tools === "none" || (Array.isArray(tools) && !tools.length);
}

function titleOf(text: string): string {
  const line = text.trim().split("\n")[0]!.trim();
  return line.length > TITLE ? `${line.slice(0, TITLE - 1)}…` : line;
}
