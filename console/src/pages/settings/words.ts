import { dictionary } from "../../lib/language";

export const words = dictionary(
  {
    title: "Settings", tabs: "Groups of settings", general: "Settings", keys: "Keys", raw: "File", doctor: "Doctor", backup: "Backup", looks: "Appearance", mcp: "MCP servers", about: "About",
    search: "Search settings", save: "Save", cancel: "Cancel", remove: "Remove", saved: "Saved", restart: "takes effect after a restart", fromDefault: "default", fromFile: "file", fromEnv: "environment", fromHost: "host.env",
    source: (where: string) => `from ${where}`, default: (value: string) => `default: ${value}`, none: "No setting has that name.", secretSet: "set, and never shown", secretEmpty: "not set", newSecret: "new value", reset: "Use the default", lines: "one per line", inFile: "Change it in the file", given: "This comes from the environment and wins over the file.",
    yes: "on", no: "off", usedNow: (size: string) => `It takes ${size} now.`, savedLater: "Saved. It takes effect when the server is started again.",
    rawText: "Every setting in one file. It is checked as a whole; a file with a mistake is never saved.", check: "Check", problems: "These lines are not right", noChange: "Nothing has changed.", good: "The file is right. These lines would change:", changedOutside: "The file was changed by someone else meanwhile.", reload: "Load it again",
    keysText: "Each program gets a key of its own, with only what it needs. A key is shown once.", newKey: "New key", keyName: "Name", keyNameHelp: "Which program or device it is for.", scopes: "It may", make: "Make the key", made: "Copy it now. It will not be shown again.", done: "I have copied it", noKeys: "Only the owner's key", noKeysText: "Make a key for each client, so that one can be revoked without the others.", revoke: "Revoke", revokeAsk: (name: string) => `Revoke the key “${name}”? What uses it stops working at once.`, owner: "owner", created: "made", lastUsed: "last used",
    scopeChat: "talk to models", scopeTools: "run tools, see tasks and calls", scopeApprove: "answer approvals", scopeAdmin: "everything", needScope: "Choose at least one.", needName: "Give it a name.",
    doctorText: "What this machine offers, and how to mend what is missing.", again: "Check again", allGood: "Everything is as it should be.", fix: "Mend it with",
    theme: "Theme", light: "Light", dark: "Dark", system: "As the system", language: "Language", version: "Version", home: "State is kept in", project: "Project", sandbox: "Plugins", limits: "Limited in processes, memory, time and environment. They see the files that the server's user sees.", limitsTitle: "Limits that this server keeps", licences: "Third-party parts of this console",
    noMcp: "No MCP server", noMcpText: "Paste the “mcpServers” JSON of any client.", addMcp: "Add servers", mcpJson: "mcpServers JSON", add: "Add", allow: "Allow", colon: ": ", reviewMcp: "Review", reviewTitle: (name: string) => `Review ${name}`, look: "Start it once and look", lookText: "To see its tools it is started once, with this command. Nothing of it is used before you allow it.", itGets: "It gets", hasChanged: "Changed since it was allowed", mcpFailed: "That did not work", writtenIn: "Written in", badJson: "This is not JSON.", tools: (n: number) => `${n} ${n === 1 ? "tool" : "tools"}`, enable: "Turn on", disable: "Turn off", command: "It runs",
  },
  {
    title: "设置", tabs: "设置分组", general: "设置项", keys: "密钥", raw: "配置文件", doctor: "诊断", backup: "备份", looks: "外观", mcp: "MCP 服务器", about: "关于",
    search: "搜索设置", save: "保存", cancel: "取消", remove: "移除", saved: "已保存", restart: "重启服务器后生效", fromDefault: "默认值", fromFile: "配置文件", fromEnv: "环境变量", fromHost: "host.env",
    source: (where: string) => `来自${where}`, default: (value: string) => `默认：${value}`, none: "没有这样的设置。", secretSet: "已设置，不会显示", secretEmpty: "未设置", newSecret: "新的值", reset: "恢复默认", lines: "每行一项", inFile: "在配置文件中修改", given: "此项来自环境变量，优先于配置文件。",
    yes: "开", no: "关", usedNow: (size: string) => `现在占用 ${size}。`, savedLater: "已保存，重启服务器后生效。",
    rawText: "所有设置都在一个文件里。保存前会整体检查，有错误的文件不会被保存。", check: "检查", problems: "以下几行有误", noChange: "没有变化。", good: "文件正确，将会改变以下内容：", changedOutside: "文件已被其他人修改。", reload: "重新载入",
    keysText: "每个程序使用自己的密钥，只给它需要的权限。密钥只显示一次。", newKey: "新建密钥", keyName: "名称", keyNameHelp: "给哪个程序或设备使用。", scopes: "权限", make: "创建密钥", made: "请立即复制，之后不会再显示。", done: "我已复制", noKeys: "只有所有者的密钥", noKeysText: "为每个客户端创建单独的密钥，就可以单独撤销。", revoke: "撤销", revokeAsk: (name: string) => `撤销密钥“${name}”？使用它的程序会立即失效。`, owner: "所有者", created: "创建于", lastUsed: "上次使用",
    scopeChat: "与模型对话", scopeTools: "运行工具，查看任务和调用", scopeApprove: "处理审批", scopeAdmin: "全部权限", needScope: "请至少选择一项。", needName: "请填写名称。",
    doctorText: "这台机器具备什么，缺少的如何补上。", again: "重新检查", allGood: "一切正常。", fix: "修复命令",
    theme: "主题", light: "浅色", dark: "深色", system: "跟随系统", language: "语言", version: "版本", home: "数据目录", project: "项目", sandbox: "插件", limits: "限制进程数、内存、时间和环境变量；能看到服务器用户能看到的文件。", limitsTitle: "这台服务器的限制", licences: "控制台使用的第三方组件",
    noMcp: "没有 MCP 服务器", noMcpText: "粘贴任意客户端的“mcpServers” JSON。", addMcp: "添加服务器", mcpJson: "mcpServers JSON", add: "添加", allow: "允许", colon: "：", reviewMcp: "审查", reviewTitle: (name: string) => `审查 ${name}`, look: "启动一次并查看", lookText: "查看它的工具需要用这条命令启动一次。允许之前不会使用它。", itGets: "它得到", hasChanged: "允许之后的改动", mcpFailed: "没有成功", writtenIn: "写在", badJson: "这不是 JSON。", tools: (n: number) => `${n} 个工具`, enable: "启用", disable: "停用", command: "运行命令",
  },
);
