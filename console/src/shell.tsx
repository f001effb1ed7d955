/** The frame around every page: the rail (a bar at the bottom on a phone), the top bar, the banner when the
 * connection is lost, toasts, the finder and the help. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Finder } from "./finder";
import { announcement } from "./lib/announce";
import { request, session } from "./lib/api";
import { toAddress } from "./lib/base";
import { keyName } from "./lib/caller";
import { formatClockTime, now } from "./lib/clock";
import { formatNumber, language, setLanguage } from "./lib/language";
import { liveConnection } from "./lib/events";
import { runningCalls, pendingApprovals } from "./lib/counters";
import { focusHeading } from "./lib/focus";
import { route } from "./lib/router";
import { finder, help } from "./lib/shortcuts";
import { isDark, setTheme } from "./lib/theme";
import { lazyPage } from "./lib/lazy-page";
import { openedCanvas } from "./lib/special-action";
import { titleParts } from "./lib/title";
import { isOutdated } from "./lib/console-update";
import { BAR, findPage, PAGES, pageTitle, RAIL, type PageRow } from "./pages";
import { Button, IconButton } from "./ui/button";
import { Dialog } from "./ui/dialog";
import { Icon } from "./ui/icon";
import { Toasts } from "./ui/toasts";
import { shellWords as words } from "./shell.words";

const Canvas = lazyPage<object>(() =>
  import("./ui/outcome/full-output").then((module) => ({ default: module.Canvas })),
);

export function Shell({ children }: { children: ComponentChildren }) {
  const page = findPage(route.value.page);
  const t = words();
  const name = page ? pageTitle(page) : t.noPage;
  const badge = pendingApprovals.value.length ? `(${pendingApprovals.value.length}) ` : "";
  const title = badge + [...new Set([...titleParts.value, name, "Toolyard"])].join(" · ");
  useEffect(() => void (document.title = title), [title]);
  useFocusOnNewPage();
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skipToContent}>
        {t.skip}
      </a>
      <nav class="rail" aria-label={t.pages}>
        <a class="brand" href="/chat">
          <img src="/console/icon.svg" width="26" height="26" alt="" />
          <span>Toolyard</span>
        </a>
        {RAIL.map((row) => (
          <Entry key={row.path} row={row} on={page === row} />
        ))}
        <a class="entry foot" href="/docs" target="_blank" rel="noopener">
          <Icon sign="book" />
          <span>{t.http}</span>
        </a>
      </nav>
      <TopBar />
      <Banner />
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <BottomBar page={page} />
      <Toasts />
      <div class="hush" role="alert">
        {pendingApprovals.value.length > 0
          ? t.asks(pendingApprovals.value[0]!.tool, pendingApprovals.value.length)
          : ""}
      </div>
      <div class="hush" role="status">
        {announcement.value.text + "\u00a0".repeat(announcement.value.count % 2)}
      </div>
      {finder.value && <Finder />}
      {help.value && <Help />}
      {openedCanvas.value && <Canvas />}
    </div>
  );
}

/** A new page is read from its heading. Parts of one page (a conversation, a filter) keep the focus where it is. */
function useFocusOnNewPage(): void {
  const { page, name } = route.value;
  const place = page === "tools" ? `${page}/${name}` : page;
  const before = useRef(place);
  useEffect(() => {
    if (before.current === place) return;
    before.current = place;
    const frame = requestAnimationFrame(focusHeading);
    return () => cancelAnimationFrame(frame);
  }, [place]);
}

function skipToContent(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Entry({ row, on, onClick }: { row: PageRow; on: boolean; onClick?: () => void }) {
  return (
    <a class="entry" href={row.path} aria-current={on ? "page" : undefined} onClick={onClick}>
      <Icon sign={row.sign} />
      <span class="cut" title={pageTitle(row)}>
        {pageTitle(row)}
      </span>
      {row.path === "/approvals" && pendingApprovals.value.length > 0 && (
        <b class="badge">{formatNumber(pendingApprovals.value.length)}</b>
      )}
    </a>
  );
}

function TopBar() {
  const t = words();
  const state = liveConnection.value.state;
  const wait = Math.max(0, Math.ceil((liveConnection.value.retryAt - now.value) / 1000));
  const connectionText =
    state === "none"
      ? t.noEvents
      : state === "live"
        ? t.live
        : state === "connecting"
          ? t.connecting
          : navigator.onLine
            ? t.reconnecting(wait)
            : t.offline;
  return (
    <header class="top">
      <span class={`dot ${state}`} title={connectionText}>
        <i aria-hidden="true" />
        <span class="wide">{connectionText}</span>
      </span>
      <a class="top-link" href="/activity?state=running" title={t.runningTitle}>
        <Icon sign="activity" size={16} />
        <span class="tabular">{runningCalls.value}</span>
        <span class="wide">{t.running}</span>
      </a>
      <a
        class={`top-link${pendingApprovals.value.length ? " alert" : ""}`}
        href="/approvals"
        title={pageTitle(findPage("approvals")!)}
      >
        <Icon sign="approvals" size={16} />
        <span class="tabular">{formatNumber(pendingApprovals.value.length)}</span>
        <span class="wide">{t.waiting}</span>
      </a>
      <span class="grow" />
      <button type="button" class="finder" aria-label={t.find} onClick={() => (finder.value = true)}>
        <Icon sign="search" size={15} />
        <span>{t.find}</span>
        <kbd>Ctrl K</kbd>
      </button>
      <IconButton
        label={language.value === "zh" ? "Switch to English" : "切换到中文"}
        sign="globe"
        onClick={() => setLanguage(language.value === "zh" ? "en" : "zh")}
      />
      <IconButton
        label={isDark() ? t.toLight : t.toDark}
        sign={isDark() ? "sun" : "moon"}
        onClick={() => setTheme(isDark() ? "light" : "dark")}
      />
      <span class="who cut" title={t.signedIn(keyName(session.value?.key ?? ""))}>
        <Icon sign="key" size={15} />
        <span class="wide">{keyName(session.value?.key ?? "")}</span>
      </span>
      <span class="wide">
        <IconButton label={t.signOut} sign="exit" onClick={signOut} />
      </span>
    </header>
  );
}

export async function signOut(): Promise<void> {
  await request("/logout", { method: "POST", body: {} });
  location.assign(toAddress(`/login?lang=${language.value === "zh" ? "zh" : "en"}`));
}

function Banner() {
  const t = words();
  if (isOutdated.value)
    return (
      <div class="banner" role="status">
        <Icon sign="info" size={16} />
        <span class="grow">{t.outdated}</span>
        <Button onClick={() => location.reload()}>{t.reload}</Button>
      </div>
    );
  if (liveConnection.value.state !== "lost") return null;
  return (
    <div class="banner" role="status">
      <Icon sign="warning" size={16} />
      {t.lost(formatClockTime(liveConnection.value.since))}
    </div>
  );
}

function BottomBar({ page }: { page: PageRow | undefined }) {
  const t = words();
  const more = useSignal(false);
  return (
    <nav class="bottom" aria-label={t.pages}>
      {BAR.map((row) => (
        <Entry key={row.path} row={row} on={page === row} />
      ))}
      <button
        type="button"
        class="entry"
        aria-expanded={more.value}
        aria-current={!page?.bar ? "page" : undefined}
        onClick={() => (more.value = true)}
      >
        <Icon sign="more" />
        <span class="cut" title={t.more}>
          {t.more}
        </span>
      </button>
      {more.value && (
        <Dialog title={t.more} onClose={() => (more.value = false)}>
          <div class="more-list">
            {RAIL.filter(({ bar }) => !bar).map((row) => (
              <Entry key={row.path} row={row} on={page === row} onClick={() => (more.value = false)} />
            ))}
            <Button
              kind="quiet"
              sign="exit"
              onClick={() => {
                more.value = false;
                return signOut();
              }}
            >
              {t.signOut}
            </Button>
          </div>
        </Dialog>
      )}
    </nav>
  );
}

function Help() {
  const t = words();
  const rows: [string, string][] = [
    ["/", t.keySearch],
    ["j  k", t.keyMove],
    ["Enter", t.keyOpen],
    ["Esc", t.keyClose],
    ["Ctrl K", t.keyFinder],
    ["?", t.keyHelp],
  ];
  for (const page of PAGES) if (page.key) rows.push([`g ${page.key}`, pageTitle(page)]);
  return (
    <Dialog title={t.keys} onClose={() => (help.value = false)}>
      <dl class="facts">
        {rows.map(([key, what]) => [
          <dt key={key}>
            <kbd>{key}</kbd>
          </dt>,
          <dd key={`${key}d`}>{what}</dd>,
        ])}
      </dl>
    </Dialog>
  );
}
