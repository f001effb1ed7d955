import { expect, test } from "vitest";
import { mergeMessages } from "./merge";
import { assistantMessage, userMessage, type Message } from "./model";

const reply = (id: string, state: Message["state"], ...texts: string[]): Message => ({
  ...assistantMessage("m", 0),
  id,
  state,
  pieces: texts.map((text) => ({ kind: "text", text })),
});
const question = (id: string): Message => ({ ...userMessage(id, []), id });

test("what only this window has follows what the server has", () => {
  const theirs = [question("1"), reply("2", "done", "a")];
  const ours = [question("1"), question("3")];
  expect(mergeMessages(theirs, ours).map((message) => message.id)).toEqual(["1", "2", "3"]);
});

test("the copy that has come to its end counts", () => {
  const whole = reply("1", "done", "all of it");
  expect(mergeMessages([whole], [reply("1", "failed", "all")])).toEqual([whole]);
  expect(mergeMessages([reply("1", "running", "all")], [whole])).toEqual([whole]);
  expect(mergeMessages([reply("1", "failed", "all")], [whole])).toEqual([whole]);
});

test("a shorter copy of ours never replaces a longer one of theirs", () => {
  const longer = reply("1", "running", "a", "b");
  expect(mergeMessages([longer], [reply("1", "running", "a")])).toEqual([longer]);
});
