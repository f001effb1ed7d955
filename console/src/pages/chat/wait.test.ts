import { describe, expect, test } from "vitest";
import { assistantMessage, type Message } from "./model";
import { applyChunk, finishReply, type Chunk } from "./reply";
import { waitOf } from "./wait";

const START = 1_700_000_000;
const say = (content: string): Chunk => ({ choices: [{ delta: { content } }] });
const tell = (type: string, more: object = {}): Chunk => ({ toolyard: { type, ...more } });
const retry = tell("provider.retry", {
  provider: "main",
  code: "upstream_429",
  status: 429,
  pause_s: 12,
  attempt: 2,
  attempts: 3,
});

/** A reply after these chunks, one each second. */
function replyOf(...chunks: Chunk[]): Message {
  const blank = { ...assistantMessage("model", 0), at: START };
  return chunks.reduce((message, chunk, at) => applyChunk(message, chunk, (START + 1 + at) * 1000), blank);
}

describe("waitOf", () => {
  test("a reply of which nothing has come waits for the provider since it was asked for", () => {
    expect(waitOf(replyOf())).toEqual({ kind: "provider", since: START });
  });

  test("words that have come wait for the next ones", () => {
    expect(waitOf(replyOf(say("a"), say("b")))).toEqual({ kind: "text", since: START + 2 });
  });

  test("a refusal tells the reason and when the next attempt is, until something comes", () => {
    expect(waitOf(replyOf(retry))).toEqual({
      kind: "retry",
      since: START,
      because: {
        kind: "retry",
        provider: "main",
        code: "upstream_429",
        status: 429,
        until: START + 13,
        attempt: 2,
        attempts: 3,
        next: "",
      },
    });
    expect(waitOf(replyOf(retry, say("a")))).toEqual({ kind: "text", since: START + 2 });
  });

  test("what is read again after a reload counts from the time at which it happened", () => {
    const before = { ...retry, toolyard: { ...retry.toolyard, at: START - 5 } };
    expect(waitOf(replyOf(before))).toMatchObject({ because: { until: START + 7 } });
    const running = tell("call.started", { id: "1", tool: "Slow", at: START - 60 });
    expect(waitOf(replyOf(running))).toMatchObject({ kind: "tool", since: START - 60 });
  });

  test("a fallback names the provider that is asked instead", () => {
    const instead = tell("provider.fallback", { provider: "main", code: "upstream_401", status: 401, next: "other" });
    expect(waitOf(replyOf(instead))).toMatchObject({ kind: "retry", because: { kind: "fallback", next: "other" } });
  });

  test("tools are waited for by name, then the provider again", () => {
    const first = tell("call.started", { id: "1", tool: "Slow" });
    const second = tell("call.started", { id: "2", tool: "Slow" });
    expect(waitOf(replyOf(first, second))).toEqual({ kind: "tool", tools: ["Slow"], since: START + 1 });
    const over = [tell("call.finished", { id: "1" }), tell("call.finished", { id: "2" })];
    expect(waitOf(replyOf(first, second, ...over))).toEqual({ kind: "provider", since: START + 4 });
  });

  test("a person is waited for before anything else", () => {
    const message = replyOf(
      tell("call.started", { id: "1", tool: "Slow" }),
      tell("call.started", { id: "2", tool: "Write" }),
      tell("approval.requested", { id: "approval_1", call_id: "2" }),
    );
    expect(waitOf(message)).toEqual({ kind: "approval", approval: "approval_1" });
    const pieces = message.pieces.map((piece) => (piece.kind === "call" ? { ...piece, answered: "allowed" } : piece));
    expect(waitOf({ ...message, pieces })).toMatchObject({ kind: "tool", tools: ["Slow", "Write"] });
  });

  test("a reply that has ended keeps no wait", () => {
    expect(finishReply(replyOf(retry), "stopped", START * 1000).wait).toBeNull();
  });
});
