/** The texts about branches, copies and files of conversations, in both languages. */
import { dictionary } from "../../lib/language";
import type { CallState } from "./model";

const STATES: Record<CallState, string> = {
  running: "running",
  approval: "waiting for approval",
  success: "success",
  partial: "partial",
  error: "error",
  cancelled: "cancelled",
  scheduled: "scheduled",
  background: "in the background",
};

const STATES_ZH: Record<CallState, string> = {
  running: "运行中",
  approval: "等待审批",
  success: "成功",
  partial: "部分成功",
  error: "失败",
  cancelled: "已取消",
  scheduled: "已计划",
  background: "后台运行",
};

export const threadWords = dictionary(
  {
    edit: "Edit",
    editing: "Edit message",
    editHelp: "Starts a new branch. The old one stays.",
    regenerate: "Regenerate",
    versionOf: (at: number, of: number) => `Version ${at} of ${of}`,
    previousVersion: "Previous version",
    nextVersion: "Next version",
    copyWithCalls: "Copy with tool calls",
    copyLink: "Copy link to this reply",
    replyMenu: "More actions for this reply",
    menu: "Conversation actions",
    menuOf: (title: string) => `Actions for “${title}”`,
    pin: "Pin",
    unpin: "Unpin",
    pinned: "Pinned",
    copyMarkdown: "Copy as Markdown",
    copied: "Copied",
    exportMarkdown: "Export as Markdown",
    exportJson: "Export as JSON",
    importFile: "Import a conversation",
    imported: "Imported",
    importFailed: (file: string) => `“${file}” could not be imported`,
    notConversation:
      "It is not an exported conversation. Choose a Markdown export, which begins with <!-- toolyard:conversation, " +
      'a JSON export, or a file like {"messages": [{"role", "content"}]}.',
    noMessages:
      "It has no messages. Choose a conversation exported as Markdown or JSON, " +
      'or a file like {"messages": [{"role", "content"}]}.',
    newerFormat: "It was exported by a newer version of Toolyard.",
    badMessage: (n: number) => `Message ${n} cannot be read: it needs a role and content.`,
    badMarker: (line: number) => `Line ${line} cannot be read: it is not a marker of a Markdown export.`,
    tooLarge: "It is larger than 8 MiB.",
    toolCall: (tool: string) => `Tool call: ${tool}`,
    attachedFile: (name: string) => `Attached file: ${name}`,
    image: "image",
    callState: (state: CallState) => STATES[state],
    denied: "denied",
    stopped: "stopped",
    failed: "failed",
  },
  {
    edit: "编辑",
    editing: "编辑消息",
    editHelp: "将新建一个分支，原分支保留。",
    regenerate: "重新生成",
    versionOf: (at: number, of: number) => `第 ${at} 个版本，共 ${of} 个`,
    previousVersion: "上一个版本",
    nextVersion: "下一个版本",
    copyWithCalls: "复制（含工具调用）",
    copyLink: "复制此回复的链接",
    replyMenu: "此回复的更多操作",
    menu: "对话操作",
    menuOf: (title: string) => `“${title}”的操作`,
    pin: "置顶",
    unpin: "取消置顶",
    pinned: "已置顶",
    copyMarkdown: "复制为 Markdown",
    copied: "已复制",
    exportMarkdown: "导出为 Markdown",
    exportJson: "导出为 JSON",
    importFile: "导入对话",
    imported: "已导入",
    importFailed: (file: string) => `无法导入“${file}”`,
    notConversation:
      "它不是导出的对话。请选择以 <!-- toolyard:conversation 开头的 Markdown 导出文件、JSON 导出文件，" +
      '或形如 {"messages": [{"role", "content"}]} 的文件。',
    noMessages:
      '其中没有消息。请选择导出为 Markdown 或 JSON 的对话，或形如 {"messages": [{"role", "content"}]} 的文件。',
    newerFormat: "它由更新版本的 Toolyard 导出。",
    badMessage: (n: number) => `无法读取第 ${n} 条消息：缺少 role 或 content。`,
    badMarker: (line: number) => `无法读取第 ${line} 行：它不是 Markdown 导出文件的标记。`,
    tooLarge: "它超过了 8 MiB。",
    toolCall: (tool: string) => `工具调用：${tool}`,
    attachedFile: (name: string) => `附件：${name}`,
    image: "图片",
    callState: (state: CallState) => STATES_ZH[state],
    denied: "已拒绝",
    stopped: "已停止",
    failed: "失败",
  },
);
