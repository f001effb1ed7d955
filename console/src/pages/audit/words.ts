import { dictionary } from "../../lib/language";
import type { Group } from "./types";

const GROUPS_EN: Record<Group, string> = {
  approval: "Approvals",
  rule: "Rules",
  plugin: "Plugins",
  mcp_server: "MCP servers",
  key: "Keys",
  session: "Sign-ins",
  settings: "Settings",
  schedule: "Schedules",
  backup: "Backups",
  restore: "Restores",
};
const GROUPS_ZH: Record<Group, string> = {
  approval: "审批",
  rule: "规则",
  plugin: "插件",
  mcp_server: "MCP 服务器",
  key: "密钥",
  session: "登录",
  settings: "设置",
  schedule: "定时任务",
  backup: "备份",
  restore: "恢复",
};

export const words = dictionary(
  {
    title: "Audit trail",
    reload: "Reload",
    search: "Search entries",
    action: "Action",
    anyAction: "Any action",
    decisions: "Decisions only",
    runs: "Runs only",
    time: "Time",
    anyTime: "Any time",
    day: "Last 24 hours",
    week: "Last 7 days",
    month: "Last 30 days",
    clear: "Clear filters",
    more: "Show more",
    none: "No entries yet",
    nothing: "No matching entries",
    by: "Done by",
    open: "Open",
    colon: ": ",
    fact: (name: string, value: string) => `${name}: ${value}`,
  },
  {
    title: "审计记录",
    reload: "刷新",
    search: "搜索记录",
    action: "操作",
    anyAction: "所有操作",
    decisions: "只看决定",
    runs: "只看运行",
    time: "时间",
    anyTime: "所有时间",
    day: "最近 24 小时",
    week: "最近 7 天",
    month: "最近 30 天",
    clear: "清除筛选",
    more: "显示更多",
    none: "还没有记录",
    nothing: "没有符合条件的记录",
    by: "操作者",
    open: "查看",
    colon: "：",
    fact: (name: string, value: string) => `${name}：${value}`,
  },
);

export const groupWords = dictionary(GROUPS_EN, GROUPS_ZH);
const wayWords = dictionary<Record<string, string>>(
  {
    key: "API key",
    session: "console",
    cli: "command line",
    mcp: "MCP",
    auto: "automatic",
    http: "HTTP",
    chat: "chat",
    schedule: "schedule",
    python: "Python",
  },
  {
    key: "API 密钥",
    session: "控制台",
    cli: "命令行",
    mcp: "MCP",
    auto: "自动",
    http: "HTTP",
    chat: "对话",
    schedule: "定时任务",
    python: "Python",
  },
);
const levelWords = dictionary<Record<string, string>>(
  {
    full: "fully confined",
    files: "files confined",
    none: "not confined",
  },
  {
    full: "完全受限",
    files: "文件受限",
    none: "未受限",
  },
);
const actionWords = dictionary<Record<string, string>>(
  {
    "approval.allowed": "Allowed",
    "approval.denied": "Denied",
    "approval.expired": "Approval expired",
    "approval.revealed": "Saw unmasked arguments",
    "rule.added": "Rule added",
    "rule.revoked": "Rule revoked",
    "plugin.allowed": "Plugin allowed",
    "node.allowed": "Node allowed",
    "plugin.installed": "Plugin installed",
    "plugin.enabled": "Plugin enabled",
    "plugin.disabled": "Plugin disabled",
    "plugin.configured": "Plugin configured",
    "plugin.removed": "Plugin removed",
    "mcp_server.added": "MCP server added",
    "mcp_server.allowed": "MCP server allowed",
    "mcp_server.enabled": "MCP server enabled",
    "mcp_server.disabled": "MCP server disabled",
    "mcp_server.removed": "MCP server removed",
    "key.created": "Key created",
    "key.revoked": "Key revoked",
    "settings.changed": "Settings changed",
    "session.link_created": "Login link created",
    "session.signed_in": "Signed in",
    "session.signed_out": "Signed out",
    "schedule.created": "Schedule created",
    "schedule.changed": "Schedule changed",
    "schedule.allowed": "Schedule allowed",
    "schedule.run": "Schedule run now",
    "schedule.resumed": "Schedule resumed",
    "schedule.paused": "Schedule paused",
    "schedule.cancelled": "Schedule cancelled",
    "backup.downloaded": "Backup downloaded",
    "restore.confirmed": "Restore confirmed",
    "restore.cancelled": "Restore cancelled",
    "call.run": "Ran",
  },
  {
    "approval.allowed": "已允许",
    "approval.denied": "已拒绝",
    "approval.expired": "审批已过期",
    "approval.revealed": "查看了未遮盖的参数",
    "rule.added": "添加规则",
    "rule.revoked": "撤销规则",
    "plugin.allowed": "允许插件",
    "node.allowed": "允许节点",
    "plugin.installed": "安装插件",
    "plugin.enabled": "启用插件",
    "plugin.disabled": "停用插件",
    "plugin.configured": "修改插件配置",
    "plugin.removed": "删除插件",
    "mcp_server.added": "添加 MCP 服务器",
    "mcp_server.allowed": "允许 MCP 服务器",
    "mcp_server.enabled": "启用 MCP 服务器",
    "mcp_server.disabled": "停用 MCP 服务器",
    "mcp_server.removed": "移除 MCP 服务器",
    "key.created": "创建密钥",
    "key.revoked": "撤销密钥",
    "settings.changed": "修改设置",
    "session.link_created": "创建登录链接",
    "session.signed_in": "登录",
    "session.signed_out": "退出登录",
    "schedule.created": "创建定时任务",
    "schedule.changed": "修改定时任务",
    "schedule.allowed": "允许定时任务",
    "schedule.run": "立即运行定时任务",
    "schedule.resumed": "恢复定时任务",
    "schedule.paused": "暂停定时任务",
    "schedule.cancelled": "取消定时任务",
    "backup.downloaded": "下载备份",
    "restore.confirmed": "确认恢复",
    "restore.cancelled": "取消恢复",
    "call.run": "运行",
  },
);

/** The word for an action; one that is not known here is shown as it is. */
export function actionWord(action: string): string {
  return actionWords()[action] ?? action;
}

export function levelWord(level: string): string {
  return levelWords()[level] ?? level;
}

/** How somebody came in; empty when their name says it already. */
export function wayWord(way: string, by: string): string {
  return way === by || (way !== "key" && by.startsWith(`${way}:`)) ? "" : (wayWords()[way] ?? way);
}
