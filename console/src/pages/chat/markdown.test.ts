import { expect, test } from "vitest";
import { conversationToMarkdown } from "./markdown";
import { assistantMessage, userMessage, type Message } from "./model";

test("a conversation is Markdown with its tool calls as quotes, whatever they said", async () => {
  const reply: Message = {
    ...assistantMessage("scripted", 0),
    state: "stopped",
    pieces: [
      { kind: "thinking", text: "secret", started: 0, ms: 1 },
      { kind: "text", text: "<think>hm</think>I look." },
      {
        kind: "call",
        id: "",
        tool: "Read",
        command: "",
        summary: "path: `a`",
        state: "success",
        text: "```\ncode\n```\n",
        started: 1,
        ended: 1.44,
        media: [],
        left: 0,
        approval: null,
        answered: "",
      },
      { kind: "text", text: "It **is** there." },
    ],
  };
  expect(await conversationToMarkdown("Files", [userMessage("Where?", ["data:"]), reply])).toBe(`# Files

## You

*(image)*

Where?

## Assistant (scripted)

I look.

> **Tool call: Read** (success, 0.4 s)
>
> \`\` path: \`a\` \`\`
>
> \`\`\`\`
> \`\`\`
> code
> \`\`\`
> \`\`\`\`

It **is** there.

*(stopped)*
`);
});
