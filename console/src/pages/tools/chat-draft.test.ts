import { describe, expect, test } from "vitest";
import type { Envelope } from "toolyard-client";
import type { Values } from "../../ui/schema-form";
import { chatPath, draftChat } from "./chat-draft";

const envelope = (text: string, data: Values): Envelope => ({
  status: "success",
  data,
  text,
  stats: {},
  context: { cwd: "/", params_input: {} },
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
