import { describe, expect, test } from "vitest";
import { withAttachments, type Attachment } from "./attachments";
import { toBlob } from "./images";

const file = (change: Partial<Attachment> = {}): Attachment => ({
  name: "notes.md",
  kind: "text",
  size: 3,
  text: "abc",
  truncated: false,
  pages: null,
  ...change,
});

describe("withAttachments", () => {
  test("is the text alone without files", () => expect(withAttachments("Hello", [])).toBe("Hello"));

  test("puts each file under its name, before the words", () =>
    expect(withAttachments("Sum up.", [file(), file({ name: "a.pdf", kind: "pdf", pages: 2 })])).toBe(
      '<attached_file name="notes.md">\nabc\n</attached_file>\n\n' +
        '<attached_file name="a.pdf" pages="2">\nabc\n</attached_file>\n\nSum up.',
    ));

  test("tells the model that there is more, and needs no words", () =>
    expect(withAttachments("", [file({ truncated: true })])).toBe(
      '<attached_file name="notes.md" part="the first 3 characters">\nabc\n</attached_file>',
    ));

  test("keeps a name inside its quotes and its line", () =>
    expect(withAttachments("", [file({ name: 'a"\n<b>&.txt' })])).toContain('name="a&quot; &lt;b&gt;&amp;.txt">'));
});

test("toBlob has the bytes and the type of a data URI", async () => {
  const blob = toBlob("data:image/png;base64,iVBORw==");
  expect(blob.type).toBe("image/png");
  expect([...new Uint8Array(await blob.arrayBuffer())]).toEqual([0x89, 0x50, 0x4e, 0x47]);
});
