import { describe, expect, test } from "vitest";
import { readConversation } from "./conversation-file";
import { FileError } from "./file-error";
import { writeMarkdownFile } from "./markdown-file";
import { assistantMessage, userMessage, type Call, type Message, type Piece } from "./model";

const DOT = "data:image/png;base64,AAAA";
const NOTES = { name: "a `b` -->.txt", kind: "text", size: 5, text: "", truncated: true, pages: null } as const;
const CALL: Call = {
  kind: "call",
  id: "c1",
  tool: "Read",
  command: "",
  summary: "path: `a` --> b\n```",
  state: "error",
  text: "",
  started: 1,
  ended: 2.5,
  media: [],
  left: 0,
  approval: null,
  answered: "denied",
};
const reply = (...pieces: Piece[]): Message => ({ ...assistantMessage("m", 0), state: "done", pieces });
const said = (text: string): Piece => ({ kind: "text", text });
const again = async (title: string, messages: Message[]) =>
  readConversation(await writeMarkdownFile(title, "m", messages));

/** Everything that a reader of Markdown or of the markers could take for its own, alone and in any combination. */
const LINES = [
  "",
  " ",
  "plain",
  "  indented",
  "# Title",
  "## You",
  "## Assistant (m)",
  "```",
  "````md",
  "~~~",
  "> quoted",
  ">",
  "<!-- toolyard:user -->",
  "<!-- toolyard:assistant {} -->",
  "<!-- toolyard:call {",
  "<!-- toolyard::text -->",
  "<!-- toolyard:",
  " <!-- toolyard:end -->",
  '<!-- toolyard:conversation {"version":9} -->',
  "-->",
  "a\r",
  "\u2028<!-- toolyard:text -->",
  "\r<!-- toolyard:text -->",
  "*(stopped)*",
  "![image](data:image/png;base64,AAAA)",
  "中文 😀",
];

/** Texts of up to six of the lines, the same in every run. */
function* makeTexts(count: number): Generator<string> {
  let seed = 7;
  const next = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
  for (let n = 0; n < count; n++) yield Array.from({ length: 1 + next(6) }, () => LINES[next(LINES.length)]).join("\n");
}

test("whatever the texts, files and results say, they are read again as they were, in their order", async () => {
  for (const text of [...LINES, ...makeTexts(300)]) {
    const answer = text.trim();
    const output = text.replace(/^(?:[^\S\n]*\n)+/, "").trimEnd();
    const { messages } = await again("T", [
      userMessage(text, [DOT], [{ ...NOTES, text }]),
      reply(said(text), { ...CALL, text }, { ...CALL, summary: text }, said(text), said(text)),
      userMessage("", []),
      userMessage(text, []),
    ]);
    expect(messages.map((one) => [one.role, one.text])).toEqual([
      ["user", text],
      ["assistant", ""],
      ["user", ""],
      ["user", text],
    ]);
    expect(messages[0]).toMatchObject({ images: [DOT], attachments: [{ ...NOTES, text }] });
    const answers = answer ? [said(answer)] : [];
    expect(messages[1]!.pieces).toEqual([
      ...answers,
      { ...CALL, text: output },
      { ...CALL, summary: text },
      ...answers,
      ...answers,
    ]);
    expect(messages.map((one) => one.parent)).toEqual(["", ...messages.slice(0, 3).map((one) => one.id)]);
  }
});

test("the title, the models, the times, a fault, and how many media it lacks are read again", async () => {
  const failed: Message = {
    ...reply({ kind: "thinking", text: "secret", started: 0, ms: 1 }, { ...CALL, media: [DOT], left: 1 }),
    model: "odd --> \n<!-- toolyard:user --> model",
    at: 1.5,
    state: "failed",
    fault: { code: "X", message: "<!-- toolyard:text -->\nno --> luck", request: "r" },
  };
  const file = await again("# Where is  it? #", [{ ...userMessage("?", []), at: 1 }, failed]);
  expect(file).toMatchObject({ title: "# Where is  it? #", model: "m", leaf: "", settings: { mode: "ask" } });
  expect(file.messages).toMatchObject([
    { at: 1 },
    { at: 1.5, model: failed.model, state: "failed", fault: failed.fault, pieces: [{ ...CALL, left: 2 }] },
  ]);
  expect((await again("", [userMessage("hi", [])])).title).toBe("");
});

test("the file is plain Markdown for everybody else", async () => {
  const question = { ...userMessage("Where?", [DOT], [{ ...NOTES, name: "a.txt", text: "one" }]), at: 1 };
  const answer = { ...reply({ ...CALL, summary: "path: a", text: "```" }, said("# Here")), at: 2 };
  expect(await writeMarkdownFile("Files", "m", [question, answer, { ...userMessage("Thanks", []), at: 3 }]))
    .toBe(`<!-- toolyard:conversation {"version":1,"model":"m"} -->
# Files

<!-- toolyard:user {"at":1} -->
## You

<!-- toolyard:image -->
![image](${DOT})

<!-- toolyard:file {"name":"a.txt","kind":"text","size":5,"truncated":true,"pages":null} -->
> **Attached file: a.txt** (5 B)
>
> \`\`\`
> one
> \`\`\`

<!-- toolyard:text -->
Where?

<!-- toolyard:assistant {"at":2,"model":"m"} -->
## Assistant (m)

<!-- toolyard:call {"id":"c1","tool":"Read","command":"","summary":"path: a","state":"error","started":1,"ended":2.5,"answered":"denied","left":0} -->
> **Tool call: Read** (denied, 1.5 s)
>
> \`path: a\`
>
> \`\`\`\`
> \`\`\`
> \`\`\`\`

<!-- toolyard:text -->
# Here

<!-- toolyard:user {"at":3} -->
## You

Thanks
`);
});

describe("a file that somebody changed", () => {
  const whyNot = (text: string) => {
    try {
      readConversation(text);
    } catch (error) {
      return error instanceof FileError ? [error.why, error.at] : error;
    }
    return "read";
  };
  const head = "<!-- toolyard:conversation -->\n";

  test("may have a preface, other line ends and no headings", () => {
    const text = `\uFEFFTo you\n\n${head}<!-- toolyard:user -->\none\ntwo\n\n<!-- toolyard:text -->\nthree`;
    for (const file of [text, text.replaceAll("\n", "\r\n")])
      expect(readConversation(file).messages).toMatchObject([{ role: "user", text: "one\ntwo\n\nthree" }]);
  });

  test("is refused with the line that cannot be read, or with what it lacks", () => {
    expect(whyNot(`hi\n${head}# T\n<!-- toolyard:robot -->`)).toEqual(["badMarker", 4]);
    expect(whyNot(`${head}<!-- toolyard:text -->`)).toEqual(["badMarker", 2]);
    expect(whyNot(`${head}<!-- toolyard:user {"at": } -->`)).toEqual(["badMarker", 2]);
    expect(whyNot(`${head}<!-- toolyard:user -->\n${head}`)).toEqual(["badMarker", 3]);
    expect(whyNot("<!-- toolyard:conversation")).toEqual(["badMarker", 1]);
    expect(whyNot(head)).toEqual(["noMessages", 0]);
    expect(whyNot('<!-- toolyard:conversation {"version":2} -->')).toEqual(["newerFormat", 0]);
    for (const text of ["# Notes\n\n## You\n\nhi", "", " <!-- toolyard:conversation -->"])
      expect(whyNot(text)).toEqual(["notConversation", 0]);
  });

  test("brings nothing that a JSON file could not bring", () => {
    const { messages } = readConversation(
      `${head}<!-- toolyard:assistant {"role":"system","state":"running","images":["https://x.example"],"id":"<b>","parent":5} -->
<!-- toolyard:call {"tool":5,"state":"approval","approval":"a1","media":["javascript:x"]} -->
<!-- toolyard:image -->
![x](https://x.example/y.png)
<!-- toolyard:file {"name":"a","pages":"many","size":-1,"kind":"x"} -->`,
    );
    expect(messages).toMatchObject([
      {
        role: "assistant",
        state: "stopped",
        images: [],
        attachments: [{ name: "a", kind: "text", size: 0, pages: null, text: "" }],
        pieces: [{ kind: "call", tool: "", state: "cancelled", approval: null, media: [] }],
      },
    ]);
  });
});
