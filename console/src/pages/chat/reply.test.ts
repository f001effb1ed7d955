import { describe, expect, test } from "vitest";
import { assistantMessage, type Call, type Message } from "./model";
import { finishReply, applyChunk, type Chunk } from "./reply";

const START = 1_700_000_000_000;
const PNG = "data:image/png;base64,iVBORw0KGgo=";

const say = (content: string): Chunk => ({ choices: [{ delta: { content } }] });
const think = (reasoning_content: string): Chunk => ({ choices: [{ delta: { reasoning_content } }] });
const started = (id: string, given: Record<string, unknown> = {}): Chunk => ({
  toolyard: { type: "call.started", id, tool: "LS", arguments: given },
});
const finished = (id: string, more: object = {}): Chunk => ({
  toolyard: { type: "call.finished", id, tool: "LS", state: "success", text: "done", time_ms: 250, ...more },
});

function replyOf(...chunks: Chunk[]): Message {
  return chunks.reduce(
    (message, chunk, at) => applyChunk(message, chunk, START + 1000 * at),
    assistantMessage("model", 0),
  );
}

const callsOf = (message: Message) => message.pieces.filter((piece): piece is Call => piece.kind === "call");

describe("take", () => {
  test("text that comes in parts is one piece", () => {
    expect(replyOf(say("Hel"), say("lo")).pieces).toEqual([{ kind: "text", text: "Hello" }]);
  });

  test("a reply does not begin with blanks", () =>
    expect(replyOf(say("\n\n"), say("a"), say("\n")).pieces).toEqual([{ kind: "text", text: "a\n" }]));

  test("thinking is a piece of its own, with the time that it took", () => {
    expect(replyOf(think("a"), think("b"), say("c")).pieces).toEqual([
      { kind: "thinking", text: "ab", started: START, ms: 1000 },
      { kind: "text", text: "c" },
    ]);
  });

  test("the thinking of other providers is known by its other name", () => {
    expect(replyOf({ choices: [{ delta: { reasoning: "a" } }] }).pieces).toMatchObject([
      { kind: "thinking", text: "a" },
    ]);
  });

  test("a call stands where it was asked for, and what came of it stands there too", () => {
    const message = replyOf(
      say("Look:"),
      started("1", { path: "src", deep: { a: 1 } }),
      finished("1", { media: [{ image_url: { url: PNG } }], media_left_out: 2 }),
      say("There."),
    );
    expect(message.pieces.map((piece) => piece.kind)).toEqual(["text", "call", "text"]);
    expect(callsOf(message)[0]).toMatchObject({
      id: "1",
      tool: "LS",
      summary: 'path: src, deep: {"a":1}',
      state: "success",
      text: "done",
      media: [PNG],
      left: 2,
      started: START / 1000 + 1,
      ended: START / 1000 + 1.25,
    });
  });

  test("a call without a time of its own ended when that was heard", () => {
    expect(callsOf(replyOf(started("1"), finished("1", { time_ms: undefined })))[0]!.ended).toBe(START / 1000 + 1);
  });

  test("calls that run at once are one round, and the next ones another", () => {
    const message = replyOf(started("1"), started("2"), finished("2"), finished("1"), started("3"));
    expect(message.rounds).toBe(2);
    expect(callsOf(message).map((call) => call.state)).toEqual(["success", "success", "running"]);
  });

  test("an end that names no call is that of the tool's call that runs", () => {
    expect(callsOf(replyOf(started("1"), started("2"), finished("2"), finished("")))).toMatchObject([
      { state: "success" },
      { state: "success" },
    ]);
  });

  test("a command is shown with its tool when it is one short word", () => {
    expect(
      callsOf(replyOf(started("1", { command: "list" }), started("2", { command: "rm -rf build" }))),
    ).toMatchObject([{ command: "list" }, { command: "" }]);
  });

  test("a call that asks is marked with its approval until it ends", () => {
    const asking = replyOf(started("1"), { toolyard: { type: "approval.requested", id: "apr_1", call_id: "1" } });
    expect(callsOf(asking)[0]).toMatchObject({ state: "approval", approval: "apr_1" });
    expect(callsOf(applyChunk(asking, finished("1"), START))[0]).toMatchObject({ state: "success", approval: "apr_1" });
  });

  test("an error ends the reply and says why", () => {
    expect(replyOf(say("a"), { error: { message: "too long", code: "context" } })).toMatchObject({
      state: "failed",
      fault: { code: "context", message: "too long" },
      pieces: [{ text: "a" }],
    });
  });

  test("an error keeps what its translation needs", () => {
    const error = { message: "no chat", message_code: "chat.gone", message_params: { id: "c" }, code: "lost" };
    expect(replyOf({ error }).fault).toEqual({ ...error, request: "" });
  });

  test("an interruption, a gap and the usage are noted", () => {
    expect(replyOf({ toolyard: { type: "interrupted" } }).state).toBe("stopped");
    expect(replyOf({ toolyard: { type: "gap" } }).gap).toBe(true);
    expect(replyOf({ choices: [], usage: { total_tokens: 7 } }).usage).toEqual({ total_tokens: 7 });
  });

  test("what a newer server tells changes nothing", () => {
    const message = replyOf(say("a"));
    expect(applyChunk(message, { toolyard: { type: "something.new" } }, START)).toEqual(message);
    expect(applyChunk(message, {}, START)).toEqual(message);
  });

  test("a message that was shown does not change under the page", () => {
    const before = replyOf(say("a"), started("1"));
    const copy = structuredClone(before);
    applyChunk(applyChunk(before, finished("1"), START), say("b"), START);
    expect(before).toEqual(copy);
  });
});

describe("ended", () => {
  test("stops what still runs", () => {
    const message = finishReply(replyOf(started("1"), started("2"), finished("2")), "done", START + 9000);
    expect(message.state).toBe("done");
    expect(callsOf(message)).toMatchObject([{ state: "cancelled", ended: START / 1000 + 9 }, { state: "success" }]);
  });

  test("a reply that failed or was stopped stays so", () => {
    expect(finishReply(replyOf({ error: {} }), "done", START).state).toBe("failed");
    expect(finishReply(replyOf({ toolyard: { type: "interrupted" } }), "done", START).state).toBe("stopped");
  });
});
