import { describe, expect, test } from "vitest";
import type { Envelope } from "toolyard-client";
import type { Json, Values } from "../schema-form";
import { mainText, splitOutcome } from "./parts";

const envelope = (text: string, data: Values): Envelope => ({
  status: "success",
  data,
  text,
  stats: {},
  context: { cwd: "/", params_input: {} },
});
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

test("a result as one text has its data", () => {
  expect(mainText(envelope("Two.", { rows: [1, 2] }))).toBe("Two.\n\nrows:\n1\n2");
});
