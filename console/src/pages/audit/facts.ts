/** The words for the facts of an entry, and for those of their values that are words of the program. */
import { dictionary } from "../../lib/language";
import { scopeWord } from "../../lib/scope";

export const factWords = dictionary<Record<string, string>>(
  {
    access: "Access",
    at: "Time",
    chat: "Chat",
    command: "Command",
    commands: "Commands",
    cron: "Repeats",
    effect: "Effect",
    fingerprint: "Fingerprint",
    folder: "Folder",
    plugins: "Plugins",
    reason: "Reason",
    risk: "Risk",
    scopes: "Permissions",
    settings: "Settings",
    source: "Source",
    with_link: "With a login link",
  },
  {
    access: "访问范围",
    at: "时间",
    chat: "对话",
    command: "命令",
    commands: "命令",
    cron: "重复",
    effect: "效果",
    fingerprint: "指纹",
    folder: "目录",
    plugins: "插件",
    reason: "原因",
    risk: "风险",
    scopes: "权限",
    settings: "设置项",
    source: "来源",
    with_link: "使用登录链接",
  },
);

const valueWords = dictionary<Record<string, string>>(
  {
    "effect allow": "allow",
    "effect deny": "deny",
    "risk read": "reads only",
    "risk write": "changes files",
    "risk execute": "runs programs",
    "risk network": "uses the network",
    "access strict": "its own folder only",
    "access declared": "as declared",
    "access read-project": "reads the project",
    "access installation": "its installation",
    "access wide": "project and network",
    "access unconfined": "unconfined",
    "reason auto-safe": "can be undone",
  },
  {
    "effect allow": "允许",
    "effect deny": "拒绝",
    "risk read": "只读",
    "risk write": "修改文件",
    "risk execute": "运行程序",
    "risk network": "访问网络",
    "access strict": "仅自身目录",
    "access declared": "按声明",
    "access read-project": "可读项目",
    "access installation": "所在的安装",
    "access wide": "项目和网络",
    "access unconfined": "不受限",
    "reason auto-safe": "可以撤销",
  },
);

const FINGERPRINT = 12;

export function factValue(key: string, value: string): string {
  if (key === "fingerprint") return value.slice(0, FINGERPRINT);
  if (key === "at") return value.replace(/-(\d{1,2}:\d{2})$/, " $1");
  if (key === "scopes") return scopeWord(value);
  return valueWords()[`${key} ${value}`] ?? value;
}
