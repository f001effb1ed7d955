/** What a tool is called and what it does, in the language of the reader where that is known. */
import { language } from "../../lib/language";

/** The built-in tools in Chinese; their own texts are in English, because models read them. */
const CHINESE: Readonly<Record<string, string>> = {
  ApplyPatch: "把补丁应用到一个或多个文件：要么全部成功，要么不做改动。",
  Edit: "替换文件中的一处文字。",
  FileOperator: "处理项目文件：一个工具，许多命令，沿用 VCPToolBox 的名称。",
  Glob: "按路径模式查找项目中的文件，例如 **/*.py。",
  Grep: "用正则表达式搜索项目中的文本文件，给出文件、行和列。",
  LS: "列出项目中一个文件夹的内容：路径、类型、大小和时间。",
  MultiEdit: "按顺序在一个文件中做多处替换：要么全部成功，要么不做改动。",
  NotebookEdit: "替换、插入或删除 Jupyter 笔记本中的单元格。",
  Read: "读取项目中的文件，可以只读其中几行。",
  Write: "把整段文字写入文件，没有则新建。",
};

export interface Named { name: string; display_name: string; translations: Readonly<Record<string, { display_name: string; description: string }>> }

/** Its display name in the language of the reader; in English the name that models use, when all else is Chinese. */
export function titleOf(one: Named): string {
  const own = one.translations[language.value]?.display_name || one.display_name;
  return !own || (language.value !== "zh" && /\p{Script=Han}/u.test(own)) ? one.name : own;
}

export function aboutOf(one: Named & { kind: string; description: string }): string {
  const own = one.translations[language.value]?.description;
  return own || (language.value === "zh" && one.kind === "built-in" && CHINESE[one.name]) || one.description;
}
