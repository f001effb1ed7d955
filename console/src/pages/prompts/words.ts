import type { PromptRow } from "toolyard-client";
import { dictionary, formatNumber, plural } from "../../lib/language";

export const words = dictionary(
  {
    title: "Prompts",
    reload: "Reload",
    about: "System messages name these texts, and their assistants are models for every client.",
    folders: "Files are read from",
    installation: "and from the installation",
    unfilled: "Nothing fills these names in system messages",
    requests: (n: number) => plural(n, { one: "# request", other: "# requests" }),
    problems: "Files with problems",
    assistant: "Assistant",
    none: "There are no prompts yet",
    noneText: "Write a file such as style.md into one of the folders above, and name it in a system message.",
    trial: "Try a system message",
    text: "System message",
    fill: "Show what the model gets",
    result: "The model gets",
    characters: (n: number) => plural(n, { one: "# character", other: "# characters" }),
    lists: "It lists tools, so none are offered besides.",
  },
  {
    title: "提示词",
    reload: "刷新",
    about: "系统消息可以引用这些文本，其中的助手对每个客户端来说都是模型。",
    folders: "读取文件的位置",
    installation: "以及安装",
    unfilled: "系统消息中的这些名称没有任何内容可填",
    requests: (n: number) => `${formatNumber(n)} 个请求`,
    problems: "有问题的文件",
    assistant: "助手",
    none: "还没有提示词",
    noneText: "请在上面的文件夹中写一个文件，例如 style.md，然后在系统消息中引用它。",
    trial: "试一条系统消息",
    text: "系统消息",
    fill: "显示模型得到的内容",
    result: "模型得到",
    characters: (n: number) => `${formatNumber(n)} 个字符`,
    lists: "其中列出了工具，所以不再另外提供。",
  },
);

export const kindWords = dictionary<Record<PromptRow["kind"], string>>(
  { prompt: "Prompt", variable: "Variable", agent: "Agent", toolbox: "Toolbox" },
  { prompt: "提示词", variable: "变量", agent: "Agent", toolbox: "工具箱" },
);
