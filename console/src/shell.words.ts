import { dictionary } from "./lib/language";

export const shellWords = dictionary(
  {
    chat: "Chat", tools: "Tools", activity: "Activity", tasks: "Tasks", schedule: "Schedule", approvals: "Approvals", settings: "Settings", status: "Status", welcome: "Welcome",
    more: "More", dismiss: "Dismiss", pages: "Pages", skip: "Skip to the page", http: "HTTP API", live: "Live", noEvents: "No live updates with this key", connecting: "Connecting", offline: "Offline", reconnecting: (s: number) => `Reconnecting in ${s} s`,
    running: "running", runningTitle: "Calls that run now", waiting: "to approve", find: "Find", toLight: "Light theme", toDark: "Dark theme", signedIn: (key: string) => `Signed in with the key ${key}`, signOut: "Sign out",
    lost: (at: string) => `Reconnecting. You see the state of ${at}.`, asks: (tool: string, n: number) => `${tool} waits for your approval. ${n} in all.`,
    keys: "Keyboard", keySearch: "Search this page", keyMove: "Move along a list", keyOpen: "Open", keyClose: "Close", keyPalette: "Find anything", keyHelp: "This help",
    noPage: "There is no such page", noPageText: "The address may be of an older version.", home: "Go to the chat", crashed: "This page has a fault", reload: "Reload",
    palette: "Find a page, a tool or a command", paletteNone: "Nothing has that name.", kindPage: "page", kindTool: "tool", kindDo: "action", light: "Light theme", dark: "Dark theme", newChat: "New chat",
  },
  {
    chat: "对话", tools: "工具", activity: "活动", tasks: "任务", schedule: "日程", approvals: "审批", settings: "设置", status: "状态", welcome: "欢迎",
    more: "更多", dismiss: "关闭", pages: "页面", skip: "跳到正文", http: "HTTP 接口", live: "已连接", noEvents: "此密钥没有实时更新", connecting: "连接中", offline: "离线", reconnecting: (s: number) => `${s} 秒后重连`,
    running: "运行中", runningTitle: "正在运行的调用", waiting: "待审批", find: "查找", toLight: "浅色主题", toDark: "深色主题", signedIn: (key: string) => `已用密钥 ${key} 登录`, signOut: "退出登录",
    lost: (at: string) => `正在重连，当前显示的是 ${at} 的状态。`, asks: (tool: string, n: number) => `${tool} 等待你的审批，共 ${n} 项。`,
    keys: "键盘", keySearch: "在本页搜索", keyMove: "在列表中移动", keyOpen: "打开", keyClose: "关闭", keyPalette: "查找一切", keyHelp: "本帮助",
    noPage: "没有这个页面", noPageText: "这个地址可能来自旧版本。", home: "前往对话", crashed: "本页出现故障", reload: "重新加载",
    palette: "查找页面、工具或命令", paletteNone: "没有找到。", kindPage: "页面", kindTool: "工具", kindDo: "操作", light: "浅色主题", dark: "深色主题", newChat: "新对话",
  },
);
