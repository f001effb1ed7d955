import { expect, test } from "vitest";
import { conversationToMarkdown } from "./markdown";
import { assistantMessage, userMessage, type Message } from "./model";

test("a conversation is Markdown with its tool calls and attached files as quotes, whatever they said", async () => {
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
  const file = { name: "a.md", kind: "text", size: 2048, text: "  # A", truncated: false, pages: null } as const;
  expect(await conversationToMarkdown("Files", [userMessage("Where?", ["data:"], [file]), reply])).toBe(`# Files

## You

*(image)*

> **Attached file: a.md** (2.0 KiB)
>
> \`\`\`
>   # A
> \`\`\`

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
