/** Names of the groups and of the settings, and what each setting is in Chinese; in English the server itself says
 * it. */
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
export const settingNames = dictionary(
  {
    allowed_hosts: "Allowed host names",
    allowed_origins: "Allowed origins (CORS)",
    approval_mode: "Approval mode",
    bubblewrap: "Processes of their own (bubblewrap)",
    chat_show: "Tool calls in replies",
    chat_unfollowed_minutes: "Unattended chat timeout, minutes",
    cluster_key: "Cluster key",
    confinement: "Confinement of plugins",
    database: "Shared database",
    fallback_encodings: "Fallback encodings",
    fallbacks: "Fallback models",
    history_days: "Retention, days",
    history_mib: "Maximum size, MiB",
    model_aliases: "List models with and without tools",
    offer: "Tools in chats",
    plugin_python: "Python for plugins",
    plugins_at_once: "Concurrent plugin calls",
    port: "Port",
    public_url: "Public URL",
    remember_tool_results: "Remember tool results",
    request_nonce: "Require request numbers",
    shared_keys: "Shared variables",
    strict_network: "Close undeclared networks",
    time_zone: "Time zone",
    tls_cert: "TLS certificate",
    tls_key: "TLS key",
    tls_self_signed: "Self-signed TLS certificate",
    truncation_direction: "Truncation",
    trusted_folders: "Trusted folders",
    trusted_proxies: "Trusted proxies",
    upstream_key: "API key",
    upstream_options: "Options",
    upstream_url: "Base URL",
    upstreams: "Additional providers",
    vcp_channels: "VCPToolBox channels",
    warm_starts: "Warm starts",
  },
  {
    allowed_hosts: "允许的主机名",
    allowed_origins: "允许的来源（CORS）",
    approval_mode: "审批模式",
    bubblewrap: "独立的进程空间（bubblewrap）",
    chat_show: "回复中的工具调用",
    chat_unfollowed_minutes: "无人查看的对话超时（分钟）",
    cluster_key: "集群密钥",
    confinement: "插件的隔离",
    database: "共享数据库",
    fallback_encodings: "备用编码",
    fallbacks: "备用模型",
    history_days: "保留天数",
    history_mib: "最大占用（MiB）",
    model_aliases: "同时列出带工具和不带工具的模型",
    offer: "对话中的工具",
    plugin_python: "插件使用的 Python",
    plugins_at_once: "插件并发数",
    port: "端口",
    public_url: "公开地址",
    remember_tool_results: "记住工具结果",
    request_nonce: "要求请求编号",
    shared_keys: "共享的变量",
    strict_network: "关闭未声明的网络",
    time_zone: "时区",
    tls_cert: "TLS 证书",
    tls_key: "TLS 私钥",
    tls_self_signed: "自签名 TLS 证书",
    truncation_direction: "截断方式",
    trusted_folders: "信任的文件夹",
    trusted_proxies: "信任的代理",
    upstream_key: "API 密钥",
    upstream_options: "选项",
    upstream_url: "地址",
    upstreams: "更多模型服务",
    vcp_channels: "VCPToolBox 频道",
    warm_starts: "预热启动",
  },
);
export const GROUPS = ["upstream", "approvals", "chat", "plugins", "files", "history", "server"] as const;

const CHINESE: Record<string, string> = {
  allowed_hosts: "可用于访问本服务器的其他主机名（含端口）。",
  allowed_origins: "允许使用本服务器的其他来源的网页。",
  approval_mode:
    "对话、MCP 客户端和定时任务的哪些操作无需审批：ask（询问）、auto（自动）、read-only（只读）或 deny（拒绝）。",
  bubblewrap: "用 bubblewrap 让插件和 MCP 服务器只能看到自己的进程；启动会变慢。",
  chat_show: "客户端未指定时，回复中如何显示工具调用：summary（摘要）、raw（原文）、hidden（隐藏）或 events（事件）。",
  chat_unfollowed_minutes: "命名对话无人查看时，多少分钟后停止。",
  cluster_key: "共享同一数据库的主机共用的密钥：为主机之间的调用签名，并加密数据库中的机密。",
  confinement: "插件和 MCP 服务器运行时至少要达到的隔离级别；达不到就不运行。",
  database: "多台主机共享的 PostgreSQL 数据库，例如 postgresql://user@host/name；留空则使用主目录中的文件。",
  fallback_encodings: "文件不是有效的 UTF-8 时，在统计猜测之前依次尝试的编码。",
  fallbacks: "模型服务没有响应时，依次改用的模型。",
  history_days: "已结束的调用、结果、后台任务、定时任务和审批的保留天数。",
  history_mib: "状态数据超过此大小（MiB）时，提前删除最旧的记录。",
  model_aliases: "在模型列表中，将每个模型同时列为 NAME+tools（带工具）和 NAME+plain（不带工具）。",
  offer: "对话请求未指定时，如何向模型提供工具：auto（自动）、native（原生）、text（文本清单）或 none（不提供）。",
  plugin_python: "插件命令为 python 且没有自己的 .venv 时使用的 Python。",
  plugins_at_once: "同时运行的插件调用数，其余的排队等待。",
  port: "服务器端口。",
  public_url: "用户访问本服务器的地址，例如 https://example.org/yard；留空则使用监听地址。",
  remember_tool_results: "客户端只发回文本时，为对话的下一次请求保留工具结果。",
  request_nonce: "只执行带编号的工具请求；每次对话请求都会生成新编号并告知模型。",
  shared_keys: "各插件可以读取的主机环境变量，按插件名列出。",
  strict_network: "没有声明所需主机的插件和 MCP 服务器不能使用网络。",
  time_zone: "未注明时区的时间按此时区解释。",
  tls_cert: "服务器证书（含证书链的 PEM 文件）；设置后服务器使用 HTTPS，还需设置 tls_key。",
  tls_key: "tls_cert 的私钥（不带密码的 PEM 文件）。",
  tls_self_signed: "使用 Toolyard 自己生成的证书提供 HTTPS，证书保存在主目录中。",
  truncation_direction: "结果过长时保留的部分：head（开头）或 tail（结尾）。",
  trusted_folders: "这些文件夹中的插件无需审查即可运行。",
  trusted_proxies: "受信任代理的地址或网段，采信其 X-Forwarded-For、-Proto、-Host、-Prefix 或 Forwarded。",
  upstream_key: "模型服务的 API 密钥。在参数、文本和错误信息中会被遮盖。",
  upstream_options: "模型服务的选项：更多密钥、请求头、查询参数、代理、超时和工具轮数。",
  upstream_url: "模型服务的地址，可带或不带 /v1。留空则由内置向导回答。",
  upstreams: "更多模型服务：各有名称和地址，可以有自己的密钥、模型列表和选项。",
  vcp_channels: "启用 VCPToolBox 的 WebSocket 频道（密钥包含在地址中）。",
  warm_starts: "提前启动插件，或从已加载的进程派生。",
};

export function groupName(group: string): string {
  return (groups() as Record<string, string>)[group] ?? group;
}

/** The display name of a setting; a setting of a newer server has only its name in the file. */
export function settingName(name: string): string {
  return (settingNames() as Record<string, string>)[name] ?? "";
}

export function settingDescription(name: string, english: string): string {
  if (language.value === "pseudo") return `${english} xx`;
  return language.value === "zh" ? (CHINESE[name] ?? english) : english;
}
