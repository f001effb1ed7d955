import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/ui.css";
import "./styles/shell.css";
import { Component, render, type ComponentChildren, type ComponentType } from "preact";
import { ApiError, openSession } from "./lib/api";
import { addBaseToLinks } from "./lib/base";
import { connect } from "./lib/events";
import { watchCounters } from "./lib/counters";
import { handleLinkClick, navigate, route } from "./lib/router";
import { lazyPage } from "./lib/lazy-page";
import { listenForShortcuts } from "./lib/shortcuts";
import { Shell } from "./shell";
import { shellWords as words } from "./shell.words";
import { Button } from "./ui/button";
import { Empty, Fault } from "./ui/state";
import Activity from "./pages/activity";
import Approvals from "./pages/approvals";
import Chat from "./pages/chat";
import Schedule from "./pages/schedule";
import Settings from "./pages/settings";
import Status from "./pages/status";
import Tasks from "./pages/tasks";
import Tools from "./pages/tools";
import Welcome from "./pages/welcome";

const PAGES: Record<string, ComponentType> = {
  chat: Chat,
  tools: Tools,
  activity: Activity,
  tasks: Tasks,
  schedule: Schedule,
  approvals: Approvals,
  settings: Settings,
  status: Status,
  audit: lazyPage(() => import("./pages/audit")),
  providers: lazyPage(() => import("./pages/providers")),
  welcome: Welcome,
};

function App() {
  const { page } = route.value;
  const Page = PAGES[page];
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

const root = document.getElementById("app")!;
addBaseToLinks();
document.addEventListener("click", handleLinkClick);
openSession().then(
  () => {
    connect();
    watchCounters();
    listenForShortcuts();
    render(<App />, root);
  },
  (error: unknown) => {
    if (error instanceof ApiError && error.status === 401) return;
    render(
      <div class="alone">
        <Fault error={error as Error} retry={() => location.reload()} />
      </div>,
      root,
    );
  },
);
