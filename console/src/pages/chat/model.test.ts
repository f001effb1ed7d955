import { afterEach, describe, expect, test } from "vitest";
import { session } from "../../lib/api";
import {
  answerOf,
  assistantMessage,
  fromStored,
  modeOf,
  newId,
  userMessage,
  settingsOf,
  SETTINGS,
  type Message,
} from "./model";

const replyOf = (...texts: string[]): Message => ({
  ...assistantMessage("model", 0),
  pieces: texts.map((text) => ({ kind: "text", text })),
});

afterEach(() => {
  session.value = null;
});

describe("settingsOf", () => {
  test("fills in what was not kept", () =>
    expect(settingsOf({ tools: ["LS"] })).toEqual({ ...SETTINGS, tools: ["LS"] }));

  test("understands what an older console kept", () => {
    expect(settingsOf({ readOnly: true })).toEqual({ ...SETTINGS, mode: "read-only" });
    expect(settingsOf({ readOnly: false })).toEqual(SETTINGS);
  });
});

describe("modeOf", () => {
  test("only a key that may answer may let calls run by themselves", () => {
    session.value = { key: "k", scopes: ["chat"], csrf: "", cursor: null };
    expect(modeOf({ ...SETTINGS, mode: "auto-safe" })).toBe("ask");
    expect(modeOf({ ...SETTINGS, mode: "read-only" })).toBe("read-only");
    session.value = { key: "k", scopes: ["chat", "approve"], csrf: "", cursor: null };
    expect(modeOf({ ...SETTINGS, mode: "auto-safe" })).toBe("auto-safe");
  });
});

describe("answerOf", () => {
  test("is what a user wrote, as they wrote it", () =>
    expect(answerOf(userMessage(" <think>hi ", []))).toBe(" <think>hi "));

  test("is the text of a reply without its calls and its thinking", () => {
    const message = replyOf("<think>hm</think>\n\nOne.", " ", "Two.\n");
    message.pieces.splice(1, 0, { kind: "thinking", text: "hm", started: 0, ms: 0 });
    expect(answerOf(message)).toBe("One.\n\nTwo.");
  });

  test("leaves out thinking that has not ended, and keeps a tag in the middle", () => {
    expect(answerOf(replyOf("<thinking>and then"))).toBe("");
    expect(answerOf(replyOf("The tag <think>x</think> is"))).toBe("The tag <think>x</think> is");
  });
});

test("completed gives a message that was kept every key", () => {
  expect(fromStored({ id: "a", role: "user", text: "hi" })).toMatchObject({
    id: "a",
    role: "user",
    text: "hi",
    images: [],
    pieces: [],
    state: "done",
    usage: null,
  });
});

test("ids are long, differ, and can stand in an address", () => {
  const ids = Array.from({ length: 50 }, newId);
  expect(new Set(ids).size).toBe(50);
  for (const id of ids) expect(id).toMatch(/^[0-9a-z]{20}$/);
});
