import { expect, test } from "vitest";
import { markWords } from "./mark-words";

const marked = (text: string, search: string) =>
  markWords(text, search)
    .map((part) => (part.hit ? `[${part.text}]` : part.text))
    .join("");

test("marks the words that begin as those of the search do", () => {
  expect(marked("The cat concatenates Cats.", "CAT")).toBe("The [cat] concatenates [Cat]s.");
  expect(marked("a.b (c+) \\d", "b c")).toBe("a.[b] ([c]+) \\d");
  expect(marked("nothing", "zz")).toBe("nothing");
  expect(marked("as it is", " ")).toBe("as it is");
});

test("marks Chinese wherever it stands", () => {
  expect(marked("它的中文名字", "中文")).toBe("它的[中文]名字");
  expect(marked("用Python写", "python")).toBe("用[Python]写");
});
