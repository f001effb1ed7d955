/** Words of the catalogue and of what stands around a tool's tabs. */
import { dictionary } from "../../lib/language";
import { stateWord } from "../../ui/chip";

export const words = dictionary(
  {
    title: "Tools", search: "Search tools", install: "Install", kind: "Kind", state: "State", risk: "Risk", any: "any", attention: "needs you", none: "No tools", noneText: "Install a plugin to begin.", noFit: "Nothing fits", noFitText: "No tool fits what was asked for.", clear: "Clear the filters",
    needsYou: "Needs you", plugins: "Plugins", builtIn: "Built-in", mcpOf: (name: string) => `MCP server ${name}`, remote: "Other hosts", favour: (name: string) => `Mark ${name} as a favourite`, pluginsFault: "The plugins could not be listed",
    builtInKind: "built-in", sync: "sync", async: "async", static: "static", service: "service", unknown: "unknown", mcpKind: "MCP", remoteKind: "remote", read: "reads", write: "writes", execute: "runs programs", network: "network",
    calls: (n: number) => `${n} ${n === 1 ? "call" : "calls"}`, errors: (rate: string) => `${rate} errors`, quiet: "no calls in 24 h", day: "last 24 hours", more: (name: string) => `More for ${name}`,
    enable: "Switch on", disable: "Switch off", reload: "Reload", copyFolder: "Copy folder path", folderCopied: "Folder path copied", logs: "Logs", enabled: (name: string) => `${name} is on`, disabled: (name: string) => `${name} is off`, reloaded: (name: string) => `${name} was read again`,
    review: "Review and allow", configure: "Settings", seeProblem: "See the problem",
    doReview: "Nobody has allowed it yet. Look at what it would run.", doChanged: "It has changed since it was allowed. Look at what changed.", doConfig: "It cannot work before its settings are filled in.", doBroken: "Its manifest cannot be used. Mend it and reload.", doDuplicate: "Another plugin of this name runs instead of it.", runsInstead: "It runs instead of these plugins of the same name:", doShadowed: "A built-in tool has this name. Rename the plugin.", doUnsupported: "A plugin of this type runs in VCPToolBox only.",
    back: "All tools", tabs: "About this tool", try: "Try it", description: "Description", manifest: "Manifest", config: "Settings", docs: "Docs", noTool: "There is no such tool", noToolText: "It may have been removed, renamed or switched off.", version: (v: string) => `version ${v}`, by: (server: string) => `from ${server}`,
    changed: "changed", broken: "broken", duplicate: "hidden", shadowed: "name taken", unsupported: "not supported",
  },
  {
    title: "工具", search: "搜索工具", install: "安装", kind: "类型", state: "状态", risk: "风险", any: "全部", attention: "需要处理", none: "没有工具", noneText: "安装一个插件即可开始。", noFit: "没有结果", noFitText: "没有符合条件的工具。", clear: "清除筛选",
    needsYou: "需要处理", plugins: "插件", builtIn: "内置", mcpOf: (name: string) => `MCP 服务器 ${name}`, remote: "其他主机", favour: (name: string) => `收藏 ${name}`, pluginsFault: "无法列出插件",
    builtInKind: "内置", sync: "同步", async: "异步", static: "静态", service: "服务", unknown: "未知", mcpKind: "MCP", remoteKind: "远程", read: "读取", write: "写入", execute: "运行程序", network: "网络",
    calls: (n: number) => `${n} 次调用`, errors: (rate: string) => `${rate} 出错`, quiet: "24 小时内无调用", day: "最近 24 小时", more: (name: string) => `${name} 的更多操作`,
    enable: "启用", disable: "停用", reload: "重新加载", copyFolder: "复制文件夹路径", folderCopied: "已复制文件夹路径", logs: "日志", enabled: (name: string) => `${name} 已启用`, disabled: (name: string) => `${name} 已停用`, reloaded: (name: string) => `已重新读取 ${name}`,
    review: "审查并允许", configure: "配置", seeProblem: "查看问题",
    doReview: "还没有人允许它运行。请先查看它会运行什么。", doChanged: "允许之后它有改动。请查看改了什么。", doConfig: "填好配置后才能使用。", doBroken: "清单无法使用。请修改后重新加载。", doDuplicate: "另一个同名插件代替它运行。", runsInstead: "它代替以下同名插件运行：", doShadowed: "内置工具用了这个名字。请重命名插件。", doUnsupported: "这种类型的插件只能在 VCPToolBox 中运行。",
    back: "全部工具", tabs: "工具信息", try: "试用", description: "描述", manifest: "清单", config: "配置", docs: "文档", noTool: "没有这个工具", noToolText: "它可能已被删除、重命名或停用。", version: (v: string) => `版本 ${v}`, by: (server: string) => `来自 ${server}`,
    changed: "有改动", broken: "已损坏", duplicate: "已被代替", shadowed: "重名", unsupported: "不支持",
  },
);

/** The word for a kind, a risk or a state of a plugin; what is not known stays as it is. */
export function kindWord(kind: string): string {
  const t = words();
  return { "built-in": t.builtInKind, mcp: t.mcpKind, remote: t.remoteKind, sync: t.sync, async: t.async, static: t.static, service: t.service, unknown: t.unknown }[kind] ?? kind;
}

export function riskWord(risk: string): string {
  const t = words();
  return { read: t.read, write: t.write, execute: t.execute, network: t.network }[risk] ?? risk;
}

/** What a person can do about a plugin in this state. */
export function todo(state: string): string {
  const t = words();
  return { needs_review: t.doReview, changed: t.doChanged, missing_config: t.doConfig, broken: t.doBroken, error: t.doBroken, duplicate: t.doDuplicate, shadowed: t.doShadowed, unsupported: t.doUnsupported }[state] ?? "";
}

/** The word for the state of a plugin; those that only plugins have are here. */
export function pluginStateWord(state: string): string {
  const t = words();
  return { attention: t.attention, changed: t.changed, broken: t.broken, duplicate: t.duplicate, shadowed: t.shadowed, unsupported: t.unsupported }[state] ?? stateWord(state);
}
