import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/ui.css";
import "./styles/records.css";
import "./styles/shell.css";
import "./styles/forced.css";
import "./styles/print.css";
import { Component, render, type ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { ApiError, openSession } from "./lib/api";
import { watchApprovals } from "./lib/approval-notice";
import { addBaseToLinks, toPath } from "./lib/base";
import { watchForUpdates } from "./lib/console-update";
import { connect } from "./lib/events";
import { keepFocus } from "./lib/focus";
import { watchCounters } from "./lib/counters";
import { registerServiceWorker } from "./lib/installation";
import { followNotifications } from "./lib/notification";
import { handleLinkClick, navigate, route } from "./lib/router";
import { loadAhead } from "./lib/lazy-page";
import { loadMessages } from "./lib/messages";
import { listenForShortcuts } from "./lib/shortcuts";
import { followKeyboard } from "./lib/visible-height";
import { findPage, PAGES } from "./pages";
import { Shell } from "./shell";
import { shellWords as words } from "./shell.words";
import { isUnreachable, Unreachable } from "./unreachable";
import { Button } from "./ui/button";
import { Empty, Fault } from "./ui/state";

function App() {
  useEffect(startRest, []);
  const { page } = route.value;
  const Page = findPage(page)?.Page;
  return (
    <Shell>
      <Guard key={page}>
        {Page ? (
          <Page />
        ) : (
          <div class="page">
            <Empty
              sign="search"
              title={words().noPage}
              action={
                <Button kind="primary" onClick={() => navigate("/chat")}>
                  {words().home}
                </Button>
              }
            >
              {words().noPageText}
            </Empty>
          </div>
        )}
      </Guard>
    </Shell>
  );
}

/** A fault of one page is shown there and leaves the rest of the console alive. */
class Guard extends Component<{ children: ComponentChildren }, { error: Error | null }> {
  state = { error: null };
  static getDerivedStateFromError(error: Error) {
    return { error };
  }
  componentDidCatch(error: Error) {
    console.error(error);
  }
  render() {
    return this.state.error ? (
      <Fault title={words().crashed} error={this.state.error} retry={() => location.reload()} />
    ) : (
      this.props.children
    );
  }
}

/** What nobody waits for: it begins when the page is painted. */
function startRest(): void {
  watchApprovals();
  connect();
  watchCounters();
  watchForUpdates();
  followNotifications();
  loadAhead([loadMessages, registerServiceWorker, ...PAGES.map(({ Page }) => Page.load)]);
}

function loadPointedPage(event: Event): void {
  const link = (event.target as Element | null)?.closest?.("a[href^='/']") as HTMLAnchorElement | null;
  const page = link && toPath(link.pathname)?.split("/")[1];
  if (page) void findPage(page)?.Page.load();
}

const root = document.getElementById("app")!;
addBaseToLinks();
document.addEventListener("click", handleLinkClick);
followKeyboard();
for (const pointed of ["pointerover", "focusin"]) document.addEventListener(pointed, loadPointedPage);
// Together: the page is there when the session is, and is drawn once.
Promise.all([openSession(), findPage(route.value.page)?.Page.load()]).then(
  () => {
    listenForShortcuts(new Map(PAGES.flatMap(({ key, path }) => (key ? [[key, path]] : []))));
    keepFocus();
    render(<App />, root);
  },
  (error: unknown) => {
    if (error instanceof ApiError && error.status === 401) return;
    if (isUnreachable(error)) return render(<Unreachable />, root);
    render(
      <div class="alone">
        <Fault error={error as Error} retry={() => location.reload()} />
      </div>,
      root,
    );
  },
);
