/** The words of the page of activity, in both languages. */
import { dictionary } from "../../lib/language";

export const activityWords = dictionary(
  {
    title: "Activity", search: "Search arguments and results", filters: "Filters", anyState: "Any status", anyTool: "Any tool", anyCaller: "Any caller", anyTime: "Any time", state: "Status", tool: "Tool", caller: "Caller", time: "Time", hour: "Last hour", day: "Last 24 hours", week: "Last 7 days",
    pause: "Pause", goOn: "Go on", fresh: (n: number) => `${n} new`, freshMost: (n: number) => `up to ${n} new`, clear: "Clear filters", calls: "Calls", who: "Who", what: "Call", elapsed: "Took", size: "Size",
    none: "No calls yet", noneText: "Every call of a tool is shown here, from chats, schedules, the command line and HTTP.", tryOne: "Try a tool", nothing: "No call fits these filters", more: "Loading more", stop: "Stop", stopping: "It is being stopped", approval: "Approval", task: "Task", chat: "Chat",
    fromChat: "chat", fromHttp: "HTTP", fromMcp: "MCP", fromSchedule: "schedule", fromCli: "command line", fromBackend: "agent", fromLibrary: "library",
    call: "Call", parts: "Parts of this call", input: "Input", output: "Output", patch: "Changes", timeline: "Timeline", process: "Process", related: "Related", raw: "Raw", retry: "Retry", curl: "Copy as curl", fixture: "Copy as test", copyId: "Copy the id", running: "It is still running.", waits: "It waits for an approval.", answer: "Answer it",
    text: "Text", data: "Data", envelope: "Whole envelope", noEnvelope: "No result was kept.", media: "Media", cut: (kept: string, whole: string) => `Shown are ${kept} of ${whole}.`, cutData: "The data was too large to keep.", whole: "Read the whole output", next: "Next lines", from: (n: number) => `Lines from ${n}`, preview: "Preview",
    undo: "Undo these changes", undoAsk: "Put the files back as they were before this call?", undone: (n: number) => (n === 1 ? "1 file was put back." : `${n} files were put back.`), undoNo: "It cannot be undone: the files have changed since, or nothing of them is kept.", undoFailed: "It could not be undone", putBack: "Put back", cancel: "Cancel",
    wholeFiles: "Whole files", beforeIt: "Before", afterIt: "After", filesNone: "Nothing of these files is kept any more.", sideNone: "No file.", sideBinary: (size: string) => `A binary file of ${size}.`, sideLarge: (size: string) => `Too large to show: ${size}.`, sideGone: "Not kept any more: the file has changed since.",
    atCalled: "Called", atExpired: "Nobody answered", atInterrupted: "Cut off", atApproved: "Approved", atDenied: "Denied", atAsked: "Asked for approval", atStarted: "Started", atFirst: "First output", atEnded: "Ended", atCallback: "Callback", atUnasked: "Allowed without asking", atTaskEnded: "Task ended", atUndone: "Put back", accepted: "accepted", refused: "refused", duplicate: "duplicate", later: (t: string) => `after ${t}`, ran: (t: string) => `ran ${t}`, waited: (t: string) => `waited ${t}`, by: "by",
    pid: "Process id", exit: "Exit code", signal: "Signal", limits: "Limits reached", warm: "Kept warm", yes: "yes", no: "no", env: "Environment", folder: "Folder", stdout: "Output", argv: "Command line", stderr: "Error output", noise: "Lines that broke the protocol",
    retryOf: "It repeats", retriedAs: "Repeated as", schedule: "Schedule", relatedNone: "Nothing else belongs to it.",
  },
  {
    title: "活动", search: "搜索参数和结果", filters: "筛选", anyState: "全部状态", anyTool: "全部工具", anyCaller: "全部调用者", anyTime: "全部时间", state: "状态", tool: "工具", caller: "调用者", time: "时间", hour: "最近 1 小时", day: "最近 24 小时", week: "最近 7 天",
    pause: "暂停", goOn: "继续", fresh: (n: number) => `${n} 条新记录`, freshMost: (n: number) => `最多 ${n} 条新记录`, clear: "清除筛选", calls: "调用", who: "来源", what: "调用", elapsed: "耗时", size: "大小",
    none: "还没有调用", noneText: "来自对话、日程、命令行和 HTTP 的每次工具调用都会显示在这里。", tryOne: "试用工具", nothing: "没有符合筛选的调用", more: "正在加载更多", stop: "停止", stopping: "正在停止", approval: "审批", task: "任务", chat: "对话",
    fromChat: "对话", fromHttp: "HTTP", fromMcp: "MCP", fromSchedule: "日程", fromCli: "命令行", fromBackend: "代理", fromLibrary: "程序库",
    call: "调用", parts: "这次调用的内容", input: "输入", output: "输出", patch: "更改", timeline: "时间线", process: "进程", related: "相关", raw: "原文", retry: "重试", curl: "复制为 curl", fixture: "复制为测试", copyId: "复制编号", running: "仍在运行。", waits: "正在等待审批。", answer: "去答复",
    text: "文本", data: "数据", envelope: "完整结果", noEnvelope: "没有保存结果。", media: "媒体", cut: (kept: string, whole: string) => `显示了 ${whole} 中的 ${kept}。`, cutData: "数据过大，没有保存。", whole: "读取完整输出", next: "后续行", from: (n: number) => `从第 ${n} 行起`, preview: "预览",
    undo: "撤销这些更改", undoAsk: "把文件恢复到这次调用之前的样子？", undone: (n: number) => `已恢复 ${n} 个文件。`, undoNo: "无法撤销：文件之后又有变化，或没有保留原内容。", undoFailed: "未能撤销", putBack: "已恢复", cancel: "取消",
    wholeFiles: "完整文件", beforeIt: "之前", afterIt: "之后", filesNone: "这些文件的内容已不再保留。", sideNone: "没有文件。", sideBinary: (size: string) => `二进制文件，${size}。`, sideLarge: (size: string) => `太大，无法显示：${size}。`, sideGone: "已不再保留：文件之后又有变化。",
    atCalled: "发起调用", atExpired: "无人答复", atInterrupted: "被中断", atApproved: "获得批准", atDenied: "被拒绝", atAsked: "请求审批", atStarted: "开始", atFirst: "首次输出", atEnded: "结束", atCallback: "回调", atUnasked: "无需审批", atTaskEnded: "任务结束", atUndone: "已恢复", accepted: "已接受", refused: "已拒绝", duplicate: "重复", later: (t: string) => `${t}后`, ran: (t: string) => `运行 ${t}`, waited: (t: string) => `等待 ${t}`, by: "操作者",
    pid: "进程号", exit: "退出码", signal: "信号", limits: "触及的限制", warm: "常驻", yes: "是", no: "否", env: "环境变量", folder: "目录", stdout: "输出", argv: "命令行", stderr: "错误输出", noise: "破坏协议的行",
    retryOf: "重试自", retriedAs: "重试为", schedule: "日程", relatedNone: "没有其他相关内容。",
  },
);
type Words = ReturnType<typeof activityWords>;

export function originOf(t: Words, origin: string): string {
  return ({ chat: t.fromChat, http: t.fromHttp, mcp: t.fromMcp, schedule: t.fromSchedule, cli: t.fromCli, backend: t.fromBackend, library: t.fromLibrary } as Record<string, string>)[origin] ?? origin;
}

export function stepOf(t: Words, what: string): string {
  return ({ called: t.atCalled, asked: t.atAsked, allowed: t.atApproved, denied: t.atDenied, expired: t.atExpired, interrupted: t.atInterrupted, unasked: t.atUnasked, started: t.atStarted, first_output: t.atFirst, task_ended: t.atTaskEnded, undone: t.atUndone, ended: t.atEnded, callback: t.atCallback } as Record<string, string>)[what] ?? what;
}

/** What became of a callback; null: the result is a state. */
export function resultOf(t: Words, result: string): string | null {
  return ({ accepted: t.accepted, refused: t.refused, duplicate: t.duplicate } as Record<string, string>)[result] ?? null;
}
