/** The words of the schedule, in both languages. */
import { dictionary } from "../../lib/language";

export const scheduleWords = dictionary(
  {
    title: "Schedule", add: "New schedule", views: "Views", next: "Upcoming", missed: "Missed", past: "Past", strip: "The next seven days", today: "Today", runsOn: (n: number) => (n === 1 ? "1 run" : `${n} runs`), moreRuns: (n: number) => `+${n}`, allDays: "All days",
    none: "Nothing is planned", noneText: "A tool can run once at a time you choose, or again and again.", missedNone: "Nothing was missed", missedNoneText: "Runs that failed, or whose time passed while the server was off, are listed here.", pastNone: "Nothing has run yet", dayNone: "Nothing is planned for this day", more: "Load more",
    every: (cron: string) => `repeats ${cron}`, inTime: (t: string) => `in ${t}`, paused: "It does not run while it is paused.", overdue: "due now", lateBy: (t: string) => `${t} late`, last: "last run", list: "Schedules",
    run: "Run now", pause: "Pause", resume: "Resume", edit: "Edit", copy: "Duplicate", cancel: "Cancel the schedule", cancelAsk: "Cancel this schedule?", cancelText: "It will not run again. Its past runs stay.", keep: "Keep it", started: "It is running.", pausedNow: "It is paused.", resumed: "It goes on.", cancelled: "It is cancelled.", saved: "It is scheduled.",
    whyLate: "Its time has passed, and it has not begun.", whyBlocked: "It waits for somebody to approve it.", toApproval: "Go to the approval", lateNoHost: "No server was running at its time.", lateBusy: "The server had too much else to do.", lateStorage: "The server could not write to its store.",
    whyExpired: "Its time passed while the server was off.", whyInterrupted: "The server stopped while it ran.", whyFailed: "The call failed.",
    detail: "Schedule", nextRun: "Next run", wasFor: "It was for", rule: "Repeats", tool: "Tool", caller: "Created by", created: "Made", zone: "Time zone", arguments: "Arguments", runs: "Runs", noRuns: "It has not run yet.", chat: "Created in the chat", open: "Open the call", id: "Id",
    newTitle: "New schedule", editTitle: "Edit the schedule", toolPick: "Choose a tool", form: "Form", json: "JSON", argumentsAs: "Arguments as", badJson: "This is not a JSON object.", when: "When", kindOnce: "Once", kindCron: "Again and again", at: "Time", atHelp: "Such as 2027-03-05-14:00, tomorrow 9:00, Sat 14:00 or in 2 hours.", pick: "Pick a time", quick: "Quick choices", inMinute: "in 1 minute", inHour: "in 1 hour", tomorrow: "tomorrow 9:00", cron: "Cron expression", cronHelp: "Minute, hour, day, month, weekday.", presets: "Often used", everyHour: "Every hour", everyDay: "Every day at 8:00", workdays: "Workdays at 9:00", everyWeek: "Mondays at 9:00", everyMonth: "The 1st at 8:00",
    isPast: "This time has passed.", notTime: "This is not a time. Write it as YYYY-MM-DD-HH:mm.", notCron: "This is not a cron expression: minute, hour, day, month, weekday.", never: "This time never comes.", skips: (at: string) => `The clocks skip this time: it means ${at}.`, twice: (at: string) => `The clocks show this time twice: it means the first, ${at}.`,
    comma: ", ", then: "then", looking: "Looking at the time", save: "Save", cancelForm: "Cancel", failed: "It could not be saved", masked: "A secret among the arguments is shown as [masked]. Write it again, or it will be lost.", needed: "Fill in what is needed.",
  },
  {
    title: "日程", add: "新建日程", views: "视图", next: "即将运行", missed: "错过", past: "已结束", strip: "未来七天", today: "今天", runsOn: (n: number) => `${n} 次运行`, moreRuns: (n: number) => `+${n}`, allDays: "全部日期",
    none: "没有安排", noneText: "可以让工具在选定的时间运行一次，或反复运行。", missedNone: "没有错过的运行", missedNoneText: "失败的运行，以及服务器关闭期间错过的运行，会列在这里。", pastNone: "还没有运行过", dayNone: "这一天没有安排", more: "加载更多",
    every: (cron: string) => `重复 ${cron}`, inTime: (t: string) => `${t}后`, paused: "暂停期间不会运行。", overdue: "已到时间", lateBy: (t: string) => `迟了 ${t}`, last: "上次运行", list: "日程列表",
    run: "立即运行", pause: "暂停", resume: "恢复", edit: "编辑", copy: "复制一份", cancel: "取消日程", cancelAsk: "取消这个日程？", cancelText: "它不会再运行，过去的运行记录会保留。", keep: "保留", started: "正在运行。", pausedNow: "已暂停。", resumed: "已恢复。", cancelled: "已取消。", saved: "已安排。",
    whyLate: "时间已过，还没有开始。", whyBlocked: "正在等待有人批准。", toApproval: "前往审批", lateNoHost: "到时间时没有服务器在运行。", lateBusy: "服务器当时太忙。", lateStorage: "服务器无法写入存储。",
    whyExpired: "到时间时服务器没有运行。", whyInterrupted: "运行期间服务器停止了。", whyFailed: "调用失败。",
    detail: "日程", nextRun: "下次运行", wasFor: "原定时间", rule: "重复规则", tool: "工具", caller: "创建者", created: "创建时间", zone: "时区", arguments: "参数", runs: "运行记录", noRuns: "还没有运行过。", chat: "创建于对话", open: "打开调用", id: "编号",
    newTitle: "新建日程", editTitle: "编辑日程", toolPick: "选择工具", form: "表单", json: "JSON", argumentsAs: "参数填写方式", badJson: "这不是 JSON 对象。", when: "时间", kindOnce: "一次", kindCron: "反复", at: "时间", atHelp: "例如 2027-03-05-14:00、明天 9:00、周六 14:00 或 2 小时后。", pick: "选择时间", quick: "快捷选择", inMinute: "1 分钟后", inHour: "1 小时后", tomorrow: "明天 9:00", cron: "Cron 表达式", cronHelp: "分、时、日、月、星期。", presets: "常用", everyHour: "每小时", everyDay: "每天 8:00", workdays: "工作日 9:00", everyWeek: "每周一 9:00", everyMonth: "每月 1 日 8:00",
    isPast: "这个时间已经过去。", notTime: "这不是时间，请写成 YYYY-MM-DD-HH:mm。", notCron: "这不是 Cron 表达式：分、时、日、月、星期。", never: "这个时间永远不会到来。", skips: (at: string) => `时钟会跳过这个时间，实际为 ${at}。`, twice: (at: string) => `时钟会两次显示这个时间，取第一次：${at}。`,
    comma: "，", then: "之后", looking: "正在查看时间", save: "保存", cancelForm: "取消", failed: "未能保存", masked: "参数中的密钥显示为 [masked]，请重新填写，否则会丢失。", needed: "请填写必填项。",
  },
);
