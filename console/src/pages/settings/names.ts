/** Names of the groups and of the settings, and what each setting is in Chinese; in English the server itself says it. */
import { dictionary, language } from "../../lib/language";

const groups = dictionary(
  {
    upstream: "Model provider",
    chat: "Chat",
    approvals: "Approvals",
    server: "Server",
    plugins: "Plugins",
    files: "Files",
    history: "History",
  },
  {
    upstream: "模型服务",
    chat: "对话",
    approvals: "审批",
    server: "服务器",
    plugins: "插件",
    files: "文件",
    history: "历史记录",
  },
);
const names = dictionary(
  {
    allowed_hosts: "Host names",
    allowed_origins: "Pages of other servers",
    approval_mode: "When to ask",
    chat_show: "Tool work in replies",
    chat_unfollowed_minutes: "Minutes an unattended chat runs",
    database: "Shared database",
    fallback_encodings: "Other encodings",
    fallbacks: "Fallback models",
    history_days: "Days to keep",
    history_mib: "Size to keep, MiB",
    model_aliases: "Models with and without tools",
    offer: "Tools in chats",
    plugin_python: "Python of plugins",
    plugins_at_once: "Plugins at once",
    port: "Port",
    public_url: "Public address",
    remember_tool_results: "Remember tool results",
    request_nonce: "Numbered requests",
    shared_keys: "Shared variables",
    time_zone: "Time zone",
    truncation_direction: "End that is kept",
    trusted_folders: "Trusted folders",
    trusted_proxies: "Trusted proxies",
    upstream_key: "Key",
    upstream_options: "Options",
    upstream_url: "Address",
    upstreams: "Further providers",
    vcp_channels: "VCPToolBox channels",
    warm_starts: "Start plugins ahead",
  },
  {
    allowed_hosts: "主机名",
    allowed_origins: "其他来源的网页",
    approval_mode: "何时询问",
    chat_show: "回复中的工具过程",
    chat_unfollowed_minutes: "无人查看的对话保留分钟数",
    database: "共用数据库",
    fallback_encodings: "备用编码",
    fallbacks: "备用模型",
    history_days: "保留天数",
    history_mib: "保留大小（MiB）",
    model_aliases: "列出带工具与不带工具的模型",
    offer: "对话中的工具",
    plugin_python: "插件的 Python",
    plugins_at_once: "同时运行的插件",
    port: "端口",
    public_url: "公开地址",
    remember_tool_results: "记住工具结果",
    request_nonce: "带编号的请求",
    shared_keys: "共享的变量",
    time_zone: "时区",
    truncation_direction: "保留哪一端",
    trusted_folders: "信任的文件夹",
    trusted_proxies: "信任的代理",
    upstream_key: "密钥",
    upstream_options: "选项",
    upstream_url: "地址",
    upstreams: "更多模型服务",
    vcp_channels: "VCPToolBox 频道",
    warm_starts: "提前启动插件",
  },
);
export const GROUPS = ["upstream", "approvals", "chat", "plugins", "files", "history", "server"] as const;

const CHINESE: Record<string, string> = {
  allowed_hosts: "访问本服务器时还可以使用的主机名（带端口）。",
  allowed_origins: "允许哪些其他来源的网页使用本服务器。",
  approval_mode:
    "对话、MCP 客户端和日程可以不经询问做什么：ask（询问）、auto（自动）、read-only（只读）或 deny（拒绝）。",
  chat_show: "客户端没有说明时，能看到多少工具过程：summary（摘要）、raw（原文）、hidden（隐藏）或 events（事件）。",
  chat_unfollowed_minutes: "命名的对话无人查看后，再过多少分钟停止。",
  database: "多台主机共用的 PostgreSQL 数据库，例如 postgresql://user@host/name；不填则使用数据目录中的文件。",
  fallback_encodings: "文件不是有效的 UTF-8 时，在统计猜测之前依次尝试的编码。",
  fallbacks: "某个模型的服务没有响应时，依次改用哪些模型。",
  history_days: "已结束的调用、结果、任务、日程和审批保留多少天。",
  history_mib: "状态数据超过多少 MiB 时，更早删除最旧的记录。",
  model_aliases: "模型列表中，是否把每个模型再列为 NAME+tools 和 NAME+plain，分别带工具和不带工具。",
  offer: "对话请求没有说明时，如何向模型提供工具：auto（自动）、native（原生）、text（文本清单）或 none（不提供）。",
  plugin_python: "插件命令写作 python 且没有自己的 .venv 时，用哪个 Python 运行。",
  plugins_at_once: "同时运行多少个插件调用，其余的排队等待。",
  port: "服务器端口。",
  public_url: "用户访问本服务器的地址，用于回复中的链接；不填则使用监听地址。",
  remember_tool_results: "客户端只发回文字时，是否为对话的下一次请求记住工具的结果。",
  request_nonce: "是否只接受带有编号的工具请求；每次对话都会把新编号告诉模型。",
  shared_keys: "各插件可以看到的主机环境变量，按插件名列出。",
  time_zone: "没有时差的时间按哪个时区理解。",
  truncation_direction: "结果对模型来说太长时，显示哪一端：head（开头）或 tail（结尾）。",
  trusted_folders: "这些文件夹中的插件不经审查即可运行。",
  trusted_proxies: "信任哪些代理的地址或网段所发的 X-Forwarded-For 与 X-Forwarded-Proto。",
  upstream_key: "模型服务的密钥。出现在参数、文字和错误中时会被遮盖。",
  upstream_options: "怎样请求模型服务：更多密钥、请求头、查询参数、代理、超时和工具轮数。",
  upstream_url: "模型服务的地址，可带或不带 /v1。不填时由内置向导回答。",
  upstreams: "更多的模型服务：每个有名称和地址，可以有自己的密钥、模型列表与选项。",
  vcp_channels: "是否开放 VCPToolBox 的 WebSocket 频道（密钥会写在地址里）。",
  warm_starts: "是否提前启动插件，或从已载入的进程派生。",
};

export function groupName(group: string): string {
  return (groups() as Record<string, string>)[group] ?? group;
}

/** What people call a setting; one of a newer server has only the name that the file knows. */
export function settingName(name: string): string {
  return (names() as Record<string, string>)[name] ?? "";
}

export function description(name: string, english: string): string {
  if (language.value === "pseudo") return `${english} xx`;
  return language.value === "zh" ? (CHINESE[name] ?? english) : english;
}
