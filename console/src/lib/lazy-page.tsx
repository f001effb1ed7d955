/** A page, or a part of one, in a file of its own, so that the first load brings only what is shown. The rest is loaded
 * ahead while nothing else happens, or when a link to it is pointed at: going there waits for nothing. */
import { signal } from "@preact/signals";
import type { Attributes, ComponentType, FunctionComponent } from "preact";
import { useEffect } from "preact/hooks";
import { Fault, Loading } from "../ui/state";
import { api } from "./api";

const PAGE_MS = 1000; // for what a page itself asks for first

export interface LazyPage<Props = object> extends FunctionComponent<Props> {
  /** Loads the page if it is not there yet; a failure is shown where the page would be. */
  load: () => Promise<void>;
}

export function lazyPage<Props = object>(load: () => Promise<{ default: ComponentType<Props> }>): LazyPage<Props> {
  const page = signal<ComponentType<Props> | null>(null);
  const fault = signal<Error | null>(null);
  let coming: Promise<void> | null = null;
  const start = () =>
    (coming ??= load().then(
      (module) => {
        page.value = module.default;
      },
      (error: unknown) => {
        fault.value = error as Error;
        coming = null;
      },
    ));
  function Shown(props: Props & Attributes) {
    useEffect(() => void start(), []);
    const isMissing = fault.value !== null;
    useEffect(() => {
      // The server gives its files only to a session: one that has ended leads to the login page.
      if (isMissing) api("/v1/session").catch(() => undefined);
    }, [isMissing]);
    const Page = page.value;
    if (Page) return <Page {...props} />;
    // A newer server has other files: only loading the console anew finds them.
    return (
      <div class="page">
        {fault.value ? <Fault error={fault.value} retry={() => location.reload()} /> : <Loading />}
      </div>
    );
  }
  return Object.assign(Shown, { load: start });
}

/** Load one thing after the other, each when the browser has nothing else to do. A page that waits for its data looks
 * idle too: the first of them gives it time. */
export function loadAhead(loads: readonly (() => Promise<void>)[]): void {
  setTimeout(() => loadNext(loads), PAGE_MS);
}

function loadNext([load, ...rest]: readonly (() => Promise<void>)[]): void {
  if (!load) return;
  const next = () => loadNext(rest); // also when it failed: it is loaded again when it is needed
  const start = () => void load().then(next, next);
  // Safari has no idle callbacks.
  if ("requestIdleCallback" in window) requestIdleCallback(start, { timeout: 5000 });
  else setTimeout(start, 500);
}
