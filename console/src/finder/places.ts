/** What the console itself has: pages, actions and error codes. They are found at once, in both languages. */
import { hasScope } from "../lib/api";
import { toAddress } from "../lib/base";
import { codeLink, ERROR_CODES, errorWords } from "../lib/error-codes";
import { setLanguage } from "../lib/language";
import { help } from "../lib/shortcuts";
import { setTheme } from "../lib/theme";
import { PRESETS } from "../pages/providers/presets";
import { words as settingsWords } from "../pages/settings/words";
import { PAGES, pageTitle } from "../pages";
import { signOut } from "../shell";
import type { Sign } from "../ui/icon";
import type { Entry } from "./entry";
import { finderWords } from "./words";

type ActionName =
  | "newChat"
  | "newSchedule"
  | "installPlugin"
  | "newKey"
  | "addServer"
  | "runDoctor"
  | "download"
  | "light"
  | "dark"
  | "system"
  | "shortcuts"
  | "signOut"
  | "running"
  | "yesterday"
  | "today"
  | "api";
/** Who looks for a provider types its name. */
const PROVIDERS = PRESETS.flatMap(({ name, chinese }) => [name, ...(chinese ? [chinese] : [])]);
const TABS = ["general", "keys", "mcp", "raw", "doctor", "backup", "looks", "about"] as const;

/** The same word in both languages. */
function inBoth<T extends object>(dictionary: { both: readonly [T, T] }, key: keyof T): string[] {
  return dictionary.both.map((words) => words[key] as string);
}

export function findPlaces(): Entry[] {
  return [...actions(), ...pages(), ...codes()];
}

function pages(): Entry[] {
  const t = finderWords();
  const page = (title: string, names: readonly string[], href: string, sign: Sign): Entry => ({
    id: `page ${href}`,
    kind: "page",
    sign,
    title,
    names,
    href,
  });
  return [
    ...PAGES.filter(({ menu }) => menu !== "none").map((row) => {
      const { path, en, zh, sign, also = [] } = row;
      const names = [en, zh, path.slice(1), ...also, ...(path === "/providers" ? PROVIDERS : [])];
      return page(pageTitle(row), names, path, sign);
    }),
    page(t.rules, inBoth(finderWords, "rules"), "/approvals?tab=rules", "approvals"),
    page(t.history, inBoth(finderWords, "history"), "/approvals?tab=history", "approvals"),
    ...TABS.filter((tab) => tab !== "general").map((tab) =>
      page(t.inSettings(settingsWords()[tab]), inBoth(settingsWords, tab), `/settings?tab=${tab}`, "settings"),
    ),
  ];
}

function actions(): Entry[] {
  const t = finderWords();
  const action = (
    name: ActionName,
    sign: Sign,
    what: { href: string } | { run: () => void },
    ...also: string[]
  ): Entry => ({
    id: `action ${name}`,
    kind: "action",
    sign,
    title: t[name],
    names: [...inBoth(finderWords, name), ...also],
    ...what,
  });
  const speak = (title: string, name: "en" | "zh", ...also: string[]): Entry => ({
    id: `action ${name}`,
    kind: "action",
    sign: "globe",
    title,
    names: [title, ...also],
    run: () => setLanguage(name),
  });
  const admin = hasScope("admin");
  return [
    action("newChat", "plus", { href: "/chat" }),
    action("yesterday", "error", { href: "/activity?state=error&since=yesterday&before=today" }, "errors yesterday"),
    action("today", "error", { href: "/activity?state=error&since=today" }, "errors today", "failed calls"),
    action("newSchedule", "plus", { href: "/schedule?form=new" }, "schedule a call"),
    ...(admin
      ? [
          action("installPlugin", "plus", { href: "/tools?install=1" }, "add plugin", "添加插件"),
          action("newKey", "key", { href: "/settings?tab=keys&new=1" }, "create key", "token"),
          action("addServer", "plug", { href: "/settings?tab=mcp&add=1" }),
          action(
            "runDoctor",
            "doctor",
            { href: "/settings?tab=doctor" },
            "run the doctor",
            "check",
            "运行检查",
            "诊断",
          ),
          action("download", "download", { href: "/settings?tab=backup" }, "export"),
        ]
      : []),
    action("running", "activity", { href: "/activity?state=running" }),
    action("light", "sun", { run: () => setTheme("light") }),
    action("dark", "moon", { run: () => setTheme("dark") }),
    action("system", "device", { run: () => setTheme("system") }),
    speak("English", "en", "language", "英文"),
    speak("中文", "zh", "Chinese", "语言"),
    action("shortcuts", "keyboard", { run: () => (help.value = true) }, "help", "帮助"),
    action(
      "api",
      "book",
      { run: () => void window.open(toAddress("/docs"), "_blank", "noopener") },
      "OpenAPI",
      "HTTP API",
      "docs",
    ),
    action("signOut", "exit", { run: () => void signOut() }, "log out", "logout", "退出"),
  ];
}

function codes(): Entry[] {
  return ERROR_CODES.map((code) => ({
    id: `code ${code}`,
    kind: "code",
    sign: "error",
    title: code,
    detail: errorWords()[code],
    names: [code, code.replaceAll("_", " "), ...inBoth(errorWords, code)],
    href: codeLink(code),
  }));
}
