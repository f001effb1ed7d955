import { expect, test } from "vitest";
import type { AssistantRow } from "toolyard-client";
import { newDraft, toBody, toDraft } from "./assistants";
import { SETTINGS } from "./model";

const STORED: AssistantRow = {
  id: "a1",
  name: "Reviewer",
  instructions: "Review.",
  model: "gpt",
  tools: ["Read"],
  mode: "read-only",
  temperature: 0,
  max_tokens: 5,
  reasoning_effort: "low",
  reply: "json",
  created: 1,
  updated: 1,
};

test("an assistant that is read and written stays the same", () =>
  expect({ id: "a1", created: 1, updated: 1, ...toBody(toDraft(STORED)) }).toEqual(STORED));

test.each([
  ["all", null],
  ["none", []],
  [["LS"], ["LS"]],
] as const)("the tools %j are stored as %j", (tools, stored) => {
  const body = toBody(newDraft({ ...SETTINGS, tools: tools as "all" }));
  expect(body.tools).toEqual(stored);
  expect(toDraft({ ...STORED, ...body }).settings.tools).toEqual(tools);
});

test("a chat that an assistant starts remembers which one", () =>
  expect(toDraft(STORED).settings.assistant).toBe("a1"));
