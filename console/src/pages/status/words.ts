import { dictionary } from "../../lib/language";

export const words = dictionary(
  {
    title: "Status", version: "Version", started: "Started ", startedAfter: "", database: "Database", disk: "Free disk", queue: "Queue", queueText: (waiting: number, running: number) => `${running} running, ${waiting} waiting`, lag: (n: number) => `${n} events behind`, noLag: "up to date", clients: "Open windows and clients", upstream: "Model provider", upstreamOne: "no others", upstreamNone: "none yet: the built-in guide answers", others: (n: number) => (n === 1 ? "and 1 other" : `and ${n} others`), memory: "Memory", memoryText: "of the server, without plugins", plugins: "Plugins", lastDay: "Last 24 hours", calls: "Calls", errors: "Errors by code", slow: "Slowest calls", perTool: "By tool", tool: "Tool", count: "Calls", failed: "Errors", half: "Typical", most: "Longest", noErrors: "No call has failed.", noCalls: "No call yet.", metrics: "Metrics for Prometheus", docs: "HTTP API", ok: "fine", bad: "not reachable", of: (total: string) => `of ${total}`,
  },
  {
    title: "状态", version: "版本", started: "", startedAfter: "启动", database: "数据库", disk: "剩余磁盘", queue: "队列", queueText: (waiting: number, running: number) => `运行 ${running}，等待 ${waiting}`, lag: (n: number) => `落后 ${n} 个事件`, noLag: "没有延迟", clients: "打开的窗口和客户端", upstream: "模型服务", upstreamOne: "没有其他服务", upstreamNone: "尚未设置：由内置向导回答", others: (n: number) => `另有 ${n} 个`, memory: "内存", memoryText: "服务器自身，不含插件", plugins: "插件", lastDay: "最近 24 小时", calls: "调用", errors: "错误码", slow: "最慢的调用", perTool: "按工具", tool: "工具", count: "调用", failed: "错误", half: "通常", most: "最长", noErrors: "没有失败的调用。", noCalls: "还没有调用。", metrics: "Prometheus 指标", docs: "HTTP 接口", ok: "正常", bad: "无法访问", of: (total: string) => `共 ${total}`,
  },
);
