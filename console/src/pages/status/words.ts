import { dictionary } from "../../lib/language";

export const words = dictionary(
  {
    title: "Status", version: "Version", since: "Running since", database: "Database", disk: "Free disk", queue: "Queue", queueText: (waiting: number, running: number) => `${running} running, ${waiting} waiting`, lag: "Event lag", lagText: (n: number) => `${n} behind`, clients: "Open windows and clients", upstream: "Model provider", upstreamOk: "last answer", upstreamNone: "none yet: the built-in guide answers", upstreamBad: "last error", memory: "Memory", plugins: "Plugins", restarts: (n: number) => `${n} restarts`, sandbox: "Plugins are kept in", lastDay: "Last 24 hours", calls: "Calls", errors: "Errors by code", slow: "Slowest calls", perTool: "By tool", tool: "Tool", count: "Calls", failed: "Errors", half: "Half within", most: "Longest", noErrors: "No call has failed.", noCalls: "No call yet.", metrics: "Metrics for Prometheus", docs: "HTTP routes", ok: "fine", bad: "not reachable", of: (total: string) => `of ${total}`,
  },
  {
    title: "状态", version: "版本", since: "启动于", database: "数据库", disk: "剩余磁盘", queue: "队列", queueText: (waiting: number, running: number) => `运行 ${running}，等待 ${waiting}`, lag: "事件延迟", lagText: (n: number) => `落后 ${n} 条`, clients: "打开的窗口和客户端", upstream: "模型服务", upstreamOk: "上次回答", upstreamNone: "尚未设置：由内置向导回答", upstreamBad: "上次错误", memory: "内存", plugins: "插件", restarts: (n: number) => `重启 ${n} 次`, sandbox: "插件隔离方式", lastDay: "最近 24 小时", calls: "调用", errors: "错误码", slow: "最慢的调用", perTool: "按工具", tool: "工具", count: "调用", failed: "错误", half: "半数以内", most: "最长", noErrors: "没有失败的调用。", noCalls: "还没有调用。", metrics: "Prometheus 指标", docs: "HTTP 接口", ok: "正常", bad: "无法访问", of: (total: string) => `共 ${total}`,
  },
);
