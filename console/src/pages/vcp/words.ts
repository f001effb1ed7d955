import type { InstallationFinding } from "toolyard-client";
import { dictionary, plural } from "../../lib/language";

export const words = dictionary(
  {
    title: "VCPToolBox installation",
    reload: "Reload",
    about: "It is used where it is. Nothing of it is run for this page.",
    none: "No installation is used in place",
    noneText: "Start the server with --vcp and the folder of VCPToolBox, or name the folder in the settings.",
    settings: "Settings",
    decision: "Decision",
    waits: (n: number) =>
      plural(n, { one: "# plugin waits for your decision", other: "# plugins wait for your decision" }),
    decided: "Every plugin that can run has been decided on. One that changes asks again.",
    together: "Together they may reach",
    all: "all",
    plugins: (n: number) => plural(n, { one: "# plugin", other: "# plugins" }),
    settingsOf: "Settings of the installation that each gets",
    process: "All plugins of VCPToolBox's own process, which also see what is no secret",
    changed: "Changed since they were approved",
    allow: (n: number) => plural(n, { one: "Allow this plugin", other: "Allow these # plugins" }),
    allowed: "Allowed",
    later: "A single plugin can be given less or more on its own page.",
    changedMeanwhile: "It has changed since it was shown. Look at it again.",
    install: "Installs the missing packages",
    waiting: "waits for your decision",
  },
  {
    title: "VCPToolBox 安装",
    reload: "刷新",
    about: "安装在原处使用。显示本页不会运行其中的任何内容。",
    none: "没有就地使用的安装",
    noneText: "启动服务器时用 --vcp 指定 VCPToolBox 的文件夹，或在设置中填写该文件夹。",
    settings: "设置",
    decision: "决定",
    waits: (n: number) => `${n} 个插件等待你的决定`,
    decided: "所有能运行的插件都已决定。插件改变后会再次询问。",
    together: "它们合起来可以访问",
    all: "全部",
    plugins: (n: number) => `${n} 个插件`,
    settingsOf: "各插件得到的安装设置",
    process: "VCPToolBox 自身进程中的所有插件，它们还能看到不是秘密的设置",
    changed: "批准之后的变化",
    allow: (n: number) => (n === 1 ? "允许此插件" : `允许这 ${n} 个插件`),
    allowed: "已允许",
    later: "可以在单个插件的页面上给它更少或更多的权限。",
    changedMeanwhile: "显示之后它又有了变化，请重新查看。",
    install: "安装缺少的软件包",
    waiting: "等待你的决定",
  },
);

export const partWords = dictionary<Record<InstallationFinding["part"], string>>(
  {
    plugin: "Plugins",
    variable: "Variables",
    agent: "Agents",
    text: "Texts",
    schedule: "Schedules",
    key: "Keys",
    client: "Clients",
    host: "VCPToolBox itself",
  },
  {
    plugin: "插件",
    variable: "变量",
    agent: "Agent",
    text: "文本",
    schedule: "定时任务",
    key: "密钥",
    client: "客户端",
    host: "VCPToolBox 本身",
  },
);

export const verdictWords = dictionary<Record<InstallationFinding["verdict"], string>>(
  { taken: "taken", adapted: "adapted", needs: "needs", left: "left" },
  { taken: "照用", adapted: "变通使用", needs: "有所欠缺", left: "不使用" },
);
