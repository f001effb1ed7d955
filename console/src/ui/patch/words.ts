/** The words of a patch, in both languages. */
import { dictionary } from "../../lib/language";

export const patchWords = dictionary(
  {
    changes: "Changes", unified: "Unified", split: "Split", layout: "Layout of the changes", whitespace: "Whitespace", files: (n: number) => (n === 1 ? "1 file" : `${n} files`),
    added: (n: number) => `${n} ${n === 1 ? "line" : "lines"} added`, removed: (n: number) => `${n} ${n === 1 ? "line" : "lines"} removed`, oldLine: "Old line", newLine: "New line", sign: "Change", text: "Text", oldText: "Before", newText: "After",
    binary: "A binary file: there is no text to compare.", same: "The text stays the same.", noNewline: "No newline at end of file", crlf: "CRLF", crlfTitle: "Lines here end with CR LF", copyPath: "Copy the path",
    create: "new", update: "changed", delete: "deleted", move: "moved", from: (path: string) => `from ${path}`,
  },
  {
    changes: "更改", unified: "合并", split: "并排", layout: "更改的排列方式", whitespace: "空白字符", files: (n: number) => `${n} 个文件`,
    added: (n: number) => `新增 ${n} 行`, removed: (n: number) => `删除 ${n} 行`, oldLine: "旧行号", newLine: "新行号", sign: "更改", text: "内容", oldText: "之前", newText: "之后",
    binary: "二进制文件，没有可比较的文本。", same: "文本没有变化。", noNewline: "文件末尾没有换行", crlf: "CRLF", crlfTitle: "此处的行以 CR LF 结尾", copyPath: "复制路径",
    create: "新建", update: "修改", delete: "删除", move: "移动", from: (path: string) => `原为 ${path}`,
  },
);
