import { expect, test } from "vitest";
import { chatLink } from "./chat-link";

test("a chat with a name can be read", () => {
  expect(chatLink("plan 1/2")).toBe("/chat/plan%201%2F2");
  expect(chatLink("chat_of_mine")).toBe("/chat/chat_of_mine");
});

test.each([`chat_${"0a".repeat(16)}`, "", null, undefined])("%j leads nowhere", (id) =>
  expect(chatLink(id)).toBeNull(),
);
