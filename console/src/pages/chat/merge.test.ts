import { expect, test } from "vitest";
import { merged } from "./merge";
import { begun, said, type Message } from "./model";

const reply = (id: string, state: Message["state"], ...texts: string[]): Message => ({
  ...begun("m", 0),
  id,
  state,
  pieces: texts.map((text) => ({ kind: "text", text })),
});
const question = (id: string): Message => ({ ...said(id, []), id });

test("what only this window has follows what the server has", () => {
  const theirs = [question("1"), reply("2", "done", "a")];
  const ours = [question("1"), question("3")];
  expect(merged(theirs, ours).map((message) => message.id)).toEqual(["1", "2", "3"]);
});

test("the copy that has come to its end counts", () => {
  const whole = reply("1", "done", "all of it");
  expect(merged([whole], [reply("1", "failed", "all")])).toEqual([whole]);
  expect(merged([reply("1", "running", "all")], [whole])).toEqual([whole]);
  expect(merged([reply("1", "failed", "all")], [whole])).toEqual([whole]);
});

test("a shorter copy of ours never replaces a longer one of theirs", () => {
  const longer = reply("1", "running", "a", "b");
  expect(merged([longer], [reply("1", "running", "a")])).toEqual([longer]);
});
