import { describe, expect, test } from "vitest";
import type { Attachment } from "./attachments";
import { readConversation, writeConversation, type ConversationFile } from "./conversation-file";
import { FileError } from "./file-error";
import { assistantMessage, SETTINGS, userMessage, type Call, type Message } from "./model";

const DOT = "data:image/png;base64,AAAA";
const call: Call = {
  kind: "call",
  id: "call_1",
  tool: "Read",
  command: "",
  summary: "path: a",
  state: "success",
  text: "out",
  started: 1,
  ended: 2,
  media: [DOT],
  left: 0,
  approval: null,
  answered: "",
};
const NOTES: Attachment = { name: "a/b.md", kind: "text", size: 9, text: "# B\n", truncated: true, pages: null };
const question: Message = { ...userMessage("Hello?", [DOT], [NOTES, { ...NOTES, kind: "pdf", pages: 2 }]), id: "q" };
const replies = ["One.", "Two."].map((text, at): Message => ({
  ...assistantMessage("m", 7),
  id: `r${at}`,
  parent: "q",
  state: "done",
  ended: 9,
  pieces: [{ kind: "thinking", text: "hm", started: 0, ms: 5 }, call, { kind: "text", text }],
}));
const FILE: ConversationFile = {
  title: "Greeting",
  model: "m",
  settings: { ...SETTINGS, instructions: "Be kind.", tools: ["Read"], mode: "read-only" },
  leaf: "r0",
  messages: [question, ...replies],
};
const read = (value: unknown) => readConversation(JSON.stringify(value));
const whyNot = (text: string) => {
  try {
    readConversation(text);
  } catch (error) {
    return error instanceof FileError ? [error.why, error.at] : error;
  }
  return "read";
};

test("what was written is read again with all branches, as parts of another chat", () => {
  const again = readConversation(writeConversation(FILE));
  expect(again).toEqual({ ...FILE, messages: FILE.messages.map((one) => ({ ...one, cursor: 0, ended: 0 })) });
});

describe("messages of OpenAI's protocol", () => {
  test("become a conversation with its instructions, images and tool calls", () => {
    const { messages, settings } = read({
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "Look" },
            { type: "image_url", image_url: { url: DOT } },
            { type: "image_url", image_url: { url: "https://elsewhere.example/x.png" } },
          ],
        },
        { role: "assistant", content: null, tool_calls: [{ id: "c", function: { name: "LS", arguments: "{}" } }] },
        { role: "tool", tool_call_id: "c", content: "a.txt" },
        { role: "assistant", content: "One file." },
      ],
    });
    expect(settings.instructions).toBe("Be brief.");
    expect(messages.map(({ role, text, images, parent }) => [role, text, images, parent])).toEqual([
      ["user", "Look", [DOT], ""],
      ["assistant", "", [], messages[0]!.id],
    ]);
    expect(messages[1]!.pieces).toMatchObject([
      { kind: "call", tool: "LS", summary: "{}", text: "a.txt", state: "success" },
      { kind: "text", text: "One file." },
    ]);
  });

  test("may stand alone as a list", () =>
    expect(read([{ role: "user", content: "hi" }]).messages).toMatchObject([{ role: "user", text: "hi" }]));
});

describe("a file from anybody", () => {
  const message = (more: object) => ({
    format: "toolyard-conversation",
    version: 1,
    messages: [{ role: "assistant", ...more }],
  });

  test("brings no right to run without approval, and no approval", () => {
    const { settings } = read({ ...message({}), settings: { mode: "auto-safe", tools: "all", other: 1 } });
    expect(settings).toEqual(SETTINGS);
    const waiting = read(message({ pieces: [{ ...call, state: "approval", approval: "a1", ended: null }] }));
    expect(waiting.messages[0]!.pieces).toMatchObject([{ state: "cancelled", approval: null }]);
  });

  test("shows no picture of another server, and only members that are known, of their types", () => {
    const [one] = read(
      message({
        id: "<b>",
        text: 5,
        images: ["https://elsewhere.example", 5],
        attachments: ["a", 5, {}, { name: "a", text: 5, kind: "script", pages: "2", more: 1 }],
        pieces: [1, { kind: "text" }, { kind: "call", tool: [], media: ["javascript:x"] }, { kind: "script" }],
        rounds: "many",
        state: "running",
        surprise: true,
      }),
    ).messages;
    expect(one).toMatchObject({ text: "", images: [], rounds: 0, state: "stopped" });
    expect(one!.attachments).toEqual([{ name: "a", kind: "text", size: 0, text: "", truncated: false, pages: null }]);
    expect(one!.id).toMatch(/^[0-9a-z]{20}$/);
    expect(one!.pieces).toMatchObject([
      { kind: "text", text: "" },
      { kind: "call", tool: "", media: [] },
    ]);
    expect(one).not.toHaveProperty("surprise");
  });

  test("that cannot be read is refused with the reason", () => {
    expect(whyNot("# Markdown")).toEqual(["notConversation", 0]);
    for (const text of ["5", "null", "{}", "[]", '{"messages": 5}', '{"messages": [{"role": "system"}]}'])
      expect(whyNot(text)).toEqual(["noMessages", 0]);
    expect(whyNot('{"messages": [{"role": "user", "content": "a"}, {"role": "robot"}]}')).toEqual(["badMessage", 2]);
    expect(whyNot('{"messages": [{"role": "user"}]}')).toEqual(["badMessage", 1]);
    expect(whyNot('{"format": "toolyard-conversation", "version": 2, "messages": []}')).toEqual(["newerFormat", 0]);
  });
});
