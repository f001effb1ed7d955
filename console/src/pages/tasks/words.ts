/** The words of the page of tasks, in both languages. */
import { dictionary } from "../../lib/language";

export const taskWords = dictionary(
  {
    title: "Tasks", states: "States", all: "All", none: "No tasks yet", noneText: "Some tools answer later, such as one that renders a film. What they work on is shown here.", tryOne: "See the tools", nothing: "No task is in this state", showAll: "Show all",
    task: "Task", state: "State", age: "Age", life: "Sign of life", limit: "Time limit", callbacks: "Callbacks", more: "Loading more", left: (t: string) => `${t} left`, over: "over its limit", callbacksN: (n: number) => (n === 1 ? "1 callback" : `${n} callbacks`),
    cancel: "Cancel", retry: "Retry", fail: "Mark as failed", copy: "Copy the placeholder", cancelled: "The task was cancelled.", retried: "It was called again.", failed: "The task is marked as failed.", failAsk: "Mark this task as failed?", failText: "A callback that comes later will only be noted.", reason: "Why", keep: "Keep it",
    interrupted: (n: number) => (n === 1 ? "1 task was cut off when the server stopped." : `${n} tasks were cut off when the server stopped.`), retryAll: "Retry all", dismiss: "Dismiss", retriedAll: (n: number, of: number) => `${n} of ${of} were called again.`,
    detail: "Task", receipt: "Receipt", arguments: "Arguments", result: "Result", progress: "Progress", placeholderName: "Placeholder", placeholderText: "Where a reply carries this, the result stands in its place once it is there.", call: "Call", caller: "Caller", created: "Started", updated: "Last sign of life", deadline: "Limit", message: "Why it ended", id: "Id",
    noCallbacks: "No callback has come yet.", accepted: "accepted", duplicate: "duplicate", refused: "refused", at: "At", what: "Result", wrongToken: "Its token was not that of the task.", tooLate: (state: string) => `The task had ended already: ${state}.`, chat: "Used in the chat",
    push: "Push", pushTo: "To clients of", everyClient: "every channel", messageType: "Message type", pushNone: "The plugin has nothing pushed to clients. Everyone who follows the events is told all the same.", pushClosed: "Nobody can listen while this setting is off:", delivered: "Delivery", nobody: "nobody was listening", tookIt: (n: number) => (n === 1 ? "1 client took it" : `${n} clients took it`), someTookIt: (n: number, of: number) => `${n} of ${of} clients took it`, wasAgain: "sent again", sendAgain: "Send again", sent: "The result was sent again.",
  },
  {
    title: "任务", states: "状态", all: "全部", none: "还没有任务", noneText: "有些工具稍后才给出结果，例如渲染视频。它们正在做的事会显示在这里。", tryOne: "查看工具", nothing: "没有处于该状态的任务", showAll: "显示全部",
    task: "任务", state: "状态", age: "时长", life: "最近动静", limit: "时限", callbacks: "回调", more: "正在加载更多", left: (t: string) => `剩余 ${t}`, over: "已超出时限", callbacksN: (n: number) => `${n} 次回调`,
    cancel: "取消", retry: "重试", fail: "标记为失败", copy: "复制占位符", cancelled: "任务已取消。", retried: "已重新调用。", failed: "任务已标记为失败。", failAsk: "把这个任务标记为失败？", failText: "之后到来的回调只会被记录。", reason: "原因", keep: "保留",
    interrupted: (n: number) => `服务器停止时有 ${n} 个任务被中断。`, retryAll: "全部重试", dismiss: "忽略", retriedAll: (n: number, of: number) => `${of} 个任务中已重新调用 ${n} 个。`,
    detail: "任务", receipt: "回执", arguments: "参数", result: "结果", progress: "进度", placeholderName: "占位符", placeholderText: "回复中的这段文字会在结果到达后被替换。", call: "调用", caller: "调用者", created: "开始时间", updated: "最近动静", deadline: "时限", message: "结束原因", id: "编号",
    noCallbacks: "还没有收到回调。", accepted: "已接受", duplicate: "重复", refused: "已拒绝", at: "时间", what: "结果", wrongToken: "令牌不是这个任务的。", tooLate: (state: string) => `任务已经结束：${state}。`, chat: "用于对话",
    push: "推送", pushTo: "目标客户端", everyClient: "所有频道", messageType: "消息类型", pushNone: "这个插件不向客户端推送结果。关注事件的各方仍会收到。", pushClosed: "关闭这项设置时没有人能收听：", delivered: "送达", nobody: "没有人在收听", tookIt: (n: number) => `${n} 个客户端已收到`, someTookIt: (n: number, of: number) => `${of} 个客户端中有 ${n} 个已收到`, wasAgain: "重发", sendAgain: "再次发送", sent: "结果已再次发送。",
  },
);
