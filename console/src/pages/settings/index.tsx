/** Settings: each with its value, where it comes from and when it holds; keys, the file itself, the doctor, backup and
 * restore. Unsaved edits stay when another tab or page is opened, and their tab has a mark. */
import "./style.css";
import type { ComponentType } from "preact";
import type { SettingsDetail } from "toolyard-client";
import { hasScope } from "../../lib/api";
import { hasDrafts } from "../../lib/drafts";
import { useResource } from "../../lib/resource";
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
import { RestartBanner } from "./restart";
import type { TabProps } from "./types";
import { Values } from "./values";
import { words } from "./words";

type Tab = "general" | "keys" | "mcp" | "raw" | "doctor" | "backup" | "looks" | "about";
const TABS: Record<Tab, ComponentType<TabProps>> = {
  general: Values,
  keys: Keys,
  mcp: Mcp,
  raw: SettingsFile,
  doctor: Doctor,
  backup: Backup,
  looks: Appearance,
  about: About,
};

export default function Settings() {
  const t = words();
  const all = useResource<SettingsDetail>(hasScope("admin") ? "/v1/settings" : null);
  const open = (queryParam("tab") in TABS ? queryParam("tab") : "general") as Tab;
  const Open = TABS[open];
  useTitle(open === "general" ? "" : t[open]);
  const isUnsaved = (tab: Tab) => hasDrafts(`settings.${tab}.`);
  return (
    <div class="page">
      <div class="head">
        <h1 class="grow">{t.title}</h1>
        <a href="/providers">{t.providers}</a>
        <a href="/audit">{t.audit}</a>
      </div>
      <Tabs
        label={t.tabs}
        open={open}
        onOpen={(tab) => setQuery({ tab: tab === "general" ? null : tab })}
        tabs={(Object.keys(TABS) as Tab[]).map((id) => ({
          id,
          name: t[id],
          ...(isUnsaved(id) ? { mark: t.unsaved } : {}),
        }))}
      />
      <RestartBanner all={all.value} />
      <Open all={all} />
    </div>
  );
}
