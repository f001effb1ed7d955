/** The table of pages: whoever adds one adds a row. The build takes the addresses from here for the server. */
import { pickText } from "./lib/language";
import { lazyPage, type LazyPage } from "./lib/lazy-page";
import type { Sign } from "./ui/icon";

export interface PageRow {
  /** `/NAME`; what follows it belongs to the page. */
  path: string;
  en: string;
  zh: string;
  sign: Sign;
  Page: LazyPage;
  /** Where people find it: in the rail and in the finder, in the finder, or only by links. */
  menu: "rail" | "finder" | "none";
  /** After `g`, it leads to the page. */
  key?: string;
  /** Its place in the bar of a phone, which has room for four. */
  bar?: number;
  /** Further words by which the finder finds it. */
  also?: readonly string[];
}

export const PAGES: readonly PageRow[] = [
  {
    path: "/chat",
    en: "Chat",
    zh: "对话",
    sign: "chat",
    menu: "rail",
    key: "c",
    bar: 1,
    Page: lazyPage(() => import("./pages/chat")),
  },
  {
    path: "/tools",
    en: "Tools",
    zh: "工具",
    sign: "tools",
    menu: "rail",
    key: "t",
    bar: 4,
    Page: lazyPage(() => import("./pages/tools")),
  },
  {
    path: "/activity",
    en: "Activity",
    zh: "活动",
    sign: "activity",
    menu: "rail",
    key: "a",
    bar: 2,
    Page: lazyPage(() => import("./pages/activity")),
  },
  {
    path: "/tasks",
    en: "Tasks",
    zh: "后台任务",
    sign: "tasks",
    menu: "rail",
    key: "k",
    Page: lazyPage(() => import("./pages/tasks")),
  },
  {
    path: "/schedule",
    en: "Schedules",
    zh: "定时任务",
    sign: "schedule",
    menu: "rail",
    key: "s",
    Page: lazyPage(() => import("./pages/schedule")),
  },
  {
    path: "/approvals",
    en: "Approvals",
    zh: "审批",
    sign: "approvals",
    menu: "rail",
    key: "p",
    bar: 3,
    Page: lazyPage(() => import("./pages/approvals")),
  },
  {
    path: "/settings",
    en: "Settings",
    zh: "设置",
    sign: "settings",
    menu: "rail",
    key: "e",
    Page: lazyPage(() => import("./pages/settings")),
  },
  {
    path: "/status",
    en: "Status",
    zh: "状态",
    sign: "status",
    menu: "rail",
    key: "u",
    Page: lazyPage(() => import("./pages/status")),
  },
  {
    path: "/audit",
    en: "Audit trail",
    zh: "审计记录",
    sign: "audit",
    menu: "finder",
    also: ["audit log"],
    Page: lazyPage(() => import("./pages/audit")),
  },
  {
    path: "/providers",
    en: "Model providers",
    zh: "模型服务",
    sign: "plug",
    menu: "finder",
    Page: lazyPage(() => import("./pages/providers")),
  },
  {
    path: "/prompts",
    en: "Prompts",
    zh: "提示词",
    sign: "prompts",
    menu: "finder",
    also: ["assistants", "variables", "助手", "变量"],
    Page: lazyPage(() => import("./pages/prompts")),
  },
  {
    path: "/vcp",
    en: "VCPToolBox installation",
    zh: "VCPToolBox 安装",
    sign: "folder",
    menu: "finder",
    also: ["review", "审查"],
    Page: lazyPage(() => import("./pages/vcp")),
  },
  {
    path: "/welcome",
    en: "Welcome",
    zh: "欢迎",
    sign: "star",
    menu: "none",
    Page: lazyPage(() => import("./pages/welcome")),
  },
];

export const RAIL = PAGES.filter((page) => page.menu === "rail");
export const BAR = PAGES.filter((page) => page.bar).sort((a, b) => a.bar! - b.bar!);

/** The page at an address, by the first part of its path. */
export function findPage(name: string): PageRow | undefined {
  return PAGES.find((page) => page.path === `/${name}`);
}

export function pageTitle({ en, zh }: PageRow): string {
  return pickText(en, zh);
}
