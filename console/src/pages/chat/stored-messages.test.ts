import { expect, test } from "vitest";
import { toStoredMessages } from "./stored-messages";
import { assistantMessage, type Call, type Message } from "./model";

const media = (characters: number) => "x".repeat(characters);
const call = (...uris: string[]): Call => ({
  kind: "call",
  id: "1",
  tool: "T",
  command: "",
  summary: "",
  state: "success",
  text: "",
  started: 0,
  ended: 1,
  media: uris,
  left: 0,
  approval: null,
  answered: "",
});
const reply = (...calls: Call[]): Message => ({ ...assistantMessage("m", 0), pieces: calls });
const sizes = (messages: Message[]) =>
  messages.map((message) => (message.pieces as Call[]).map((one) => [one.media.map((uri) => uri.length), one.left]));

test("small media are kept", () => {
  const message = reply(call(media(1000)), call());
  expect(toStoredMessages([message])).toEqual([message]);
});

test("media that are too large are counted", () => {
  expect(sizes(toStoredMessages([reply(call(media(1_400_001), media(10)))]))).toEqual([[[[10], 1]]]);
});

test("when there are too many, the newest stay", () => {
  const messages = Array.from({ length: 6 }, () => reply(call(media(1_000_000))));
  expect(sizes(toStoredMessages(messages))).toEqual([
    [[[], 1]],
    ...Array.from({ length: 5 }, () => [[[1_000_000], 0]]),
  ]);
});

test("what is shown does not change", () => {
  const message = reply(call(media(2_000_000)));
  toStoredMessages([message]);
  expect(sizes([message])).toEqual([[[[2_000_000], 0]]]);
});
