import { describe, expect, test } from "vitest";
import { SETTINGS } from "./model";
import { parseMaxTokens, parseTemperature, toReplyFields } from "./reply-options";

describe("toReplyFields", () => {
  test("sends nothing that is not set", () => expect(toReplyFields(SETTINGS)).toEqual({}));

  test("uses the names of the protocol, for zero too", () =>
    expect(toReplyFields({ ...SETTINGS, temperature: 0, maxTokens: 5, effort: "low" })).toEqual({
      temperature: 0,
      max_tokens: 5,
      reasoning_effort: "low",
    }));
});

test.each([
  ["", null],
  [" 0.7 ", 0.7],
  ["0,7", 0.7],
  ["2", 2],
  ["2.1", undefined],
  ["-1", undefined],
  ["warm", undefined],
])("the temperature %j is %j", (text, value) => expect(parseTemperature(text)).toBe(value));

test.each([
  ["", null],
  ["4096", 4096],
  ["0", undefined],
  ["1.5", undefined],
])("the length %j is %j", (text, value) => expect(parseMaxTokens(text)).toBe(value));
