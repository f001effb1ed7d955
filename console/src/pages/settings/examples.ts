/** An example of each setting that is written as text, and the meaning of each choice in words. */
import { dictionary } from "../../lib/language";

export const EXAMPLES: Readonly<Record<string, string>> = {
  allowed_hosts: "yard.example.org:6005",
  allowed_origins: "https://chat.example.org",
  built_in: "FileOperator: false",
  chat_unfollowed_minutes: "30",
  database: "postgresql://toolyard@db.example.org:5432/toolyard",
  fallback_encodings: "shift_jis",
  history_days: "90",
  history_mib: "4096",
  plugin_python: "/usr/bin/python3.12",
  plugins_at_once: "4",
  port: "8080",
  public_url: "https://example.org/yard",
  shared_keys: "TarotDivination: VarHttpUrl, VarCity",
  time_zone: "Asia/Shanghai",
  tls_cert: "/etc/toolyard/fullchain.pem",
  tls_key: "/etc/toolyard/privkey.pem",
  trusted_folders: "/srv/plugins",
  trusted_proxies: "10.0.0.0/8",
};

const choices = dictionary(
  {
    "approval_mode.ask": "Ask before anything but reading",
    "approval_mode.auto": "Run everything; only protected files ask",
    "approval_mode.read-only": "Only read; refuse the rest",
    "approval_mode.deny": "Refuse every call",
    "chat_show.summary": "A line for each tool call",
    "chat_show.raw": "Everything, as the model wrote it",
    "chat_show.hidden": "Only the answer",
    "chat_show.events": "Events for programs",
    "confinement.available": "As far as this machine can",
    "confinement.files": "At least their files",
    "confinement.required": "Completely, or they do not run",
    "offer.auto": "As the model understands it best",
    "offer.native": "As tools of the request",
    "offer.text": "As a list in the instructions",
    "offer.none": "Not at all",
    "truncation_direction.head": "Keep the beginning",
    "truncation_direction.tail": "Keep the end",
  },
  {
    "approval_mode.ask": "除读取外都先询问",
    "approval_mode.auto": "全部直接运行，仅受保护的文件询问",
    "approval_mode.read-only": "只允许读取，拒绝其他操作",
    "approval_mode.deny": "拒绝所有调用",
    "chat_show.summary": "每次工具调用显示一行",
    "chat_show.raw": "显示模型写出的全部原文",
    "chat_show.hidden": "只显示回答",
    "chat_show.events": "供程序使用的事件",
    "confinement.available": "按本机能力尽量限制",
    "confinement.files": "至少限制文件访问",
    "confinement.required": "必须完全限制，否则不运行",
    "offer.auto": "按模型最擅长的方式",
    "offer.native": "作为请求中的工具",
    "offer.text": "作为提示词中的清单",
    "offer.none": "不提供",
    "truncation_direction.head": "保留开头",
    "truncation_direction.tail": "保留结尾",
  },
);

/** A choice in words, with the word that the file has for it; a choice of a newer server has only that. */
export function choiceName(setting: string, choice: string): string {
  const name = (choices() as Record<string, string>)[`${setting}.${choice}`];
  return name ? `${name} (${choice})` : choice;
}
