import { describe, expect, test } from "vitest";
import type { Json, Values } from "../../ui/schema-form";
import { chatPath, draftChat } from "./chat-draft";
import { mainText, splitOutcome } from "./outcome-parts";
import type { Envelope } from "./types";

const envelope = (text: string, data: Values): Envelope => ({ status: "success", data, text, stats: {}, context: {} });
const split = (text: string, data: Values, hasMedia = false) => splitOutcome(envelope(text, data), new Set(), hasMedia);

describe("splitOutcome", () => {
  test("does not say again what the text says", () => {
    expect(split("The answer: 4.", { result: "The answer: 4." })).toEqual({ content: "", data: {}, facts: {} });
  });

  test("keeps what the text does not have, by how it is read", () => {
    const entries = [{ path: "a" }];
    expect(split("Listed 1 entry.", { entries, content: "# a", total: 1, next: null, truncated: false })).toEqual({
      content: "# a",
      data: { entries },
      facts: { total: 1 },
    });
  });

  test("leaves out parts of content that are shown as text and media", () => {
    const content: Json = [
      { type: "text", text: "Drawn." },
      { type: "image", path: "a.png" },
    ];
    expect(split("Drawn.", { content }, true).data).toEqual({});
    expect(split("Drawn.", { content }).data).toEqual({ content });
  });
});

describe("a draft for a chat", () => {
  test("has the whole result in a fence that nothing in it closes", () => {
    const draft = draftChat("Result of Read:", envelope("Read it.", { content: "```js\n1\n```" }));
    expect(draft).toBe("Result of Read:\n\n````\nRead it.\n\n```js\n1\n```\n````\n\n");
  });

  test("is cut where it would be too long to read, and is part of an address", () => {
    const draft = draftChat("R:", envelope("x".repeat(20_000), {}));
    expect(draft.length).toBeLessThan(12_100);
    expect(draft).toContain("…");
    expect(chatPath("a b&c")).toBe("/chat?prompt=a+b%26c");
  });
});

test("a result as one text has its data", () => {
  expect(mainText(envelope("Two.", { rows: [1, 2] }))).toBe("Two.\n\nrows:\n1\n2");
});
