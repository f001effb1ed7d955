/** The words of the page of approvals, in both languages. */
import { dictionary } from "../../lib/language";

export const approvalWords = dictionary(
  {
    title: "Approvals", inbox: "Inbox", history: "History", rules: "Rules", views: "Views", none: "Nothing waits for you", noneText: "When a model wants to change something, it asks here first.", seeRules: "See the rules",
    deny: "Deny", once: "Allow once", chat: "Allow for this chat", always: "Always allow", note: "Deny with a note", denyAll: (n: number) => `Deny all ${n}`, denyAllAsk: (n: number) => `Deny all ${n} calls that wait?`, denyAllText: "The model is told that each was refused.", cancel: "Cancel",
    identical: (n: number) => `${n} identical calls wait.`, allowIdentical: (n: number) => `Allow all ${n}`, denyIdentical: (n: number) => `Deny all ${n}`,
    asks: (who: string) => `asked by ${who}`, openCall: "Open in activity", openChat: "Open the chat", said: "The user's last words", arguments: "Arguments", asJson: "JSON", noArguments: "No arguments.", changes: "What it would change", noPatch: (why: string) => `The changes cannot be shown: ${why}`, commandLine: "Command line", detailFailed: "It could not be read whole, so it cannot be allowed yet",
    hidden: "It holds characters that cannot be seen. They are marked ⟦U+…⟧.",
    masked: (what: string) => `Masked here: ${what}.`, characters: (count: number) => `${count} ${count === 1 ? "character" : "characters"}`, reveal: "Reveal",
    left: "denied by itself in", over: "The time is over",
    riskRead: "read", riskWrite: "write", riskExecute: "execute", riskNetwork: "network", becauseWrite: "It changes files.", becauseExecute: "It runs a program.", becauseNetwork: "It reaches the network.", becauseProtected: "It writes to a protected place. Only a person can allow that, each time.", becauseMode: "The approval mode decides so.", becauseRead: "It only reads.", becauseAllowRule: "A rule allows it.", becauseDenyRule: "A rule refuses it.", becauseAutoSafe: "What it does can be undone, and the chat ran such calls without asking.",
    answeredBy: (who: string) => `by ${who}`, byItself: "without asking", nobody: "nobody answered in time", gone: "the call that asked is gone", clear: "Clear answered", failed: "The answer was not taken", noteLabel: "What should the model know?", noteHelp: "It reads this with the refusal.", noRule: "No single rule can say this, so it can only be allowed once.",
    alwaysTitle: "Always allow this?", alwaysText: "This rule will be saved. Calls that it fits run without asking, from any chat, until you revoke it.", ruleAllow: "allow", ruleDeny: "deny", matched: (n: number, m: number) => `It fits ${n} of the last ${m} calls.`, counting: "Counting past calls", saveRule: "Save the rule and allow", protectedStays: "Protected places still ask.",
    notify: "Browser notices", sound: "Sound", noNotice: "This browser does not let the console show notices.", noticeTitle: (tool: string) => `${tool} asks for your approval`, noticeText: "Open Toolyard to answer.",
    historyNone: "Nothing was asked yet", historyNoneText: "Every answer will be kept here.", more: "Loading more", detail: "Approval",
    rulesNone: "There are no rules", rulesNoneText: "Without rules the approval mode decides.", addRule: "Add a rule", editRule: "Change the rule", exportRules: "Export JSON", hits: (n: number) => (n === 1 ? "used once" : `used ${n} times`), unused: "not used yet", lastUsed: "last", revoke: "Revoke", revokeAsk: (name: string) => `Revoke the rule for ${name}?`, revokeAllow: "Calls that it allowed will ask again.", revokeDeny: "Calls that it refused will be judged by the mode again.", onlyChat: "this chat only, until a restart", allCommands: "all commands", madeBy: (who: string) => `made by ${who}`,
    tool: "Tool", command: "Command", commandHelp: "Empty: all commands of the tool.", effect: "Effect", allow: "Allow", save: "Save", protectedTitle: "Protected places", protectedText: "Writing to settings, shell profiles, .git, .ssh and the like asks each time: no rule that allows reaches there.",
    trial: "Would this call ask?", trialText: "As a chat would make it. Nothing runs.", argumentsJson: "Arguments as JSON", test: "Test", badJson: "This is not a JSON object.", willRun: "It runs without asking.", willAsk: "It asks.", willDeny: "It is refused.",
  },
  {
    title: "审批", inbox: "待处理", history: "历史", rules: "规则", views: "视图", none: "没有等待你的事项", noneText: "模型想要更改内容时，会先在这里询问。", seeRules: "查看规则",
    deny: "拒绝", once: "允许一次", chat: "本对话内允许", always: "始终允许", note: "拒绝并附言", denyAll: (n: number) => `全部拒绝（${n}）`, denyAllAsk: (n: number) => `拒绝全部 ${n} 个等待的调用？`, denyAllText: "模型会得知每个调用都被拒绝。", cancel: "取消",
    identical: (n: number) => `有 ${n} 个相同的调用在等待。`, allowIdentical: (n: number) => `全部允许（${n}）`, denyIdentical: (n: number) => `全部拒绝（${n}）`,
    asks: (who: string) => `由 ${who} 请求`, openCall: "在活动中打开", openChat: "打开对话", said: "用户最后说的话", arguments: "参数", asJson: "JSON", noArguments: "没有参数。", changes: "将要更改的内容", noPatch: (why: string) => `无法显示更改：${why}`, commandLine: "命令行", detailFailed: "未能读取完整内容，暂时不能允许",
    hidden: "其中有看不见的字符，已标记为 ⟦U+…⟧。",
    masked: (what: string) => `以下内容已隐藏：${what}。`, characters: (count: number) => `${count} 个字符`, reveal: "显示原文",
    left: "自动拒绝倒计时", over: "时间已到",
    riskRead: "读取", riskWrite: "写入", riskExecute: "执行", riskNetwork: "网络", becauseWrite: "它会更改文件。", becauseExecute: "它会运行程序。", becauseNetwork: "它会访问网络。", becauseProtected: "它会写入受保护的位置，每次都必须由人来允许。", becauseMode: "由审批模式决定。", becauseRead: "它只读取。", becauseAllowRule: "有规则允许它。", becauseDenyRule: "有规则拒绝它。", becauseAutoSafe: "它的操作可以撤销，这个对话允许此类调用直接执行。",
    answeredBy: (who: string) => `由 ${who} 处理`, byItself: "未询问，直接执行", nobody: "无人及时回应", gone: "发起请求的调用已结束", clear: "清除已答复", failed: "答复没有被接受", noteLabel: "要告诉模型什么？", noteHelp: "它会和拒绝一起读到。", noRule: "无法用一条规则表达，只能逐次允许。",
    alwaysTitle: "始终允许？", alwaysText: "将保存下面这条规则。符合它的调用不再询问，对所有对话有效，直到你撤销。", ruleAllow: "允许", ruleDeny: "拒绝", matched: (n: number, m: number) => `最近 ${m} 次调用中有 ${n} 次符合。`, counting: "正在统计过去的调用", saveRule: "保存规则并允许", protectedStays: "受保护的位置仍会询问。",
    notify: "浏览器通知", sound: "声音", noNotice: "这个浏览器不允许控制台显示通知。", noticeTitle: (tool: string) => `${tool} 请求你的审批`, noticeText: "打开 Toolyard 以答复。",
    historyNone: "还没有任何请求", historyNoneText: "每次答复都会保存在这里。", more: "正在加载更多", detail: "审批详情",
    rulesNone: "没有规则", rulesNoneText: "没有规则时由审批模式决定。", addRule: "添加规则", editRule: "更改规则", exportRules: "导出 JSON", hits: (n: number) => `使用过 ${n} 次`, unused: "尚未使用", lastUsed: "上次", revoke: "撤销", revokeAsk: (name: string) => `撤销 ${name} 的规则？`, revokeAllow: "它允许过的调用将重新询问。", revokeDeny: "它拒绝过的调用将重新由模式决定。", onlyChat: "仅限该对话，重启后失效", allCommands: "所有命令", madeBy: (who: string) => `由 ${who} 创建`,
    tool: "工具", command: "命令", commandHelp: "留空：该工具的所有命令。", effect: "效果", allow: "允许", save: "保存", protectedTitle: "受保护的位置", protectedText: "写入设置、Shell 配置、.git、.ssh 等位置每次都会询问，允许规则对它们无效。",
    trial: "这个调用会询问吗？", trialText: "按对话发起的调用来判断，不会真正运行。", argumentsJson: "参数（JSON）", test: "测试", badJson: "这不是 JSON 对象。", willRun: "直接运行，不询问。", willAsk: "会询问。", willDeny: "会被拒绝。",
  },
);
type Words = ReturnType<typeof approvalWords>;

/** Why it asks, in the reader's language; the server's own sentence where we have none. */
export function whyOf(t: Words, because: string | null | undefined, reason: string | undefined): string {
  const known: Record<string, string> = { write: t.becauseWrite, execute: t.becauseExecute, network: t.becauseNetwork, protected: t.becauseProtected, mode: t.becauseMode, read: t.becauseRead, "allow-rule": t.becauseAllowRule, "deny-rule": t.becauseDenyRule, "auto-safe": t.becauseAutoSafe };
  return known[because ?? ""] ?? reason ?? "";
}

export function riskOf(t: Words, risk: string): string {
  return ({ read: t.riskRead, write: t.riskWrite, execute: t.riskExecute, network: t.riskNetwork } as Record<string, string>)[risk] ?? risk;
}
