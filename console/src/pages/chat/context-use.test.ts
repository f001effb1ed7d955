import { describe, expect, test } from "vitest";
import { contextUse, fillsPrompt, shortCount, toTokenUse } from "./context-use";
import { assistantMessage, userMessage, type Message } from "./model";

const reply = (prompt: number | undefined, tokens: number, total = 0): Message => ({
  ...assistantMessage("m", 0),
  usage: { total_tokens: total },
  use: toTokenUse(prompt === undefined ? undefined : { prompt_tokens: prompt, completion_tokens: 10 }, {
    tools: 4,
    tokens,
  }),
});

describe("contextUse", () => {
  test("is nothing before the first request", () => expect(contextUse([userMessage("x", [])], 1000)).toBeNull());

  test("is that of the last request, with all tokens of the conversation", () =>
    expect(contextUse([reply(100, 50, 110), userMessage("x", []), reply(190, 50, 200)], 1000)).toMatchObject({
      prompt: 190,
      total: 310,
      filled: 0.2,
      toolShare: 0.05,
    }));

  test("the tools are never more than the prompt they are in", () =>
    expect(contextUse([reply(100, 130)], null)).toMatchObject({ toolTokens: 100, toolShare: 1, filled: null }));
});

test.each([
  [12_000, 9000, null, true],
  [20_000, 9000, null, false],
  [4200, 4000, null, false],
  [8000, 4100, 128_000, false],
  [2500, 1700, 8000, true],
  [2500, 1500, 8000, false],
  [undefined, 9000, null, false],
])("of a prompt of %j, %d tokens of tools in a window of %j fill it: %j", (prompt, tokens, window, fills) =>
  expect(fillsPrompt(contextUse([reply(prompt, tokens)], window)!, window)).toBe(fills),
);

test.each([
  [0, "0"],
  [999, "999"],
  [12_430, "12.4k"],
  [128_000, "128k"],
  [999_600, "1M"],
  [1_048_576, "1M"],
])("%d tokens are %s", (tokens, text) => expect(shortCount(tokens)).toBe(text));
