/** Settings: each with its value, where it comes from and when it holds; keys, the file itself, the doctor, backup and restore. */
import "./style.css";
import { setQuery, queryParam } from "../../lib/router";
import { useTitle } from "../../lib/title";
import { Tabs } from "../../ui/tabs";
import { About } from "./about";
import { Backup } from "./backup";
import { Doctor } from "./doctor";
import { SettingsFile } from "./file";
import { Keys } from "./keys";
import { Appearance } from "./appearance";
import { Mcp } from "./mcp";
import { Values } from "./values";
import { words } from "./words";

const TABS = {
  general: Values,
  keys: Keys,
  mcp: Mcp,
  raw: SettingsFile,
  doctor: Doctor,
  backup: Backup,
  looks: Appearance,
  about: About,
} as const;
type Tab = keyof typeof TABS;

export default function Settings() {
  const t = words();
  const open = (queryParam("tab") in TABS ? queryParam("tab") : "general") as Tab;
  const Open = TABS[open];
  useTitle(open === "general" ? "" : t[open]);
  return (
    <div class="page">
      <div class="head">
        <h1 class="grow">{t.title}</h1>
        <a href="/audit">{t.audit}</a>
      </div>
      <Tabs
        label={t.tabs}
        open={open}
        onOpen={(tab) => setQuery({ tab: tab === "general" ? null : tab })}
        tabs={(Object.keys(TABS) as Tab[]).map((id) => ({ id, name: t[id] }))}
      />
      <Open />
    </div>
  );
}
