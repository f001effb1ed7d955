/** The event stream, from the moment at which the session was requested, so that no change after a page has loaded is
 * missed. Each event is delivered once: after a lost connection, the stream resumes at the last cursor.
 * A `gap` (events that are no longer stored) reaches every listener, which then reloads its state. */
import { signal } from "@preact/signals";
import { api, hasScope, session } from "./api";
import { toAddress } from "./base";

export interface ServerEvent {
  seq: number;
  type: string;
  at: number;
  data: Record<string, unknown>;
}
/** `none`: this key may not receive events; pages show the state at the time they were opened. */
export type Connection = { state: "connecting" | "live" | "lost" | "none"; since: number; retryAt: number };
type Listener = (event: ServerEvent) => void;

export const liveConnection = signal<Connection>({ state: "connecting", since: Date.now(), retryAt: 0 });
/** Incremented at every reconnection, so that lists can reload. */
export const reconnections = signal(0);

const listeners = new Map<Listener, readonly string[]>();
let cursor: number | null = null;
let attempts = 0;
let socket: WebSocket | null = null;
let timer = 0;

/** Subscribe to events whose type begins with one of `prefixes`, and to every `gap`; returns a function that
 * unsubscribes. */
export function subscribe(prefixes: readonly string[], listener: Listener): () => void {
  listeners.set(listener, prefixes);
  return () => void listeners.delete(listener);
}

export function connect(): void {
  clearTimeout(timer);
  if (!hasScope("approve")) {
    liveConnection.value = { state: "none", since: Date.now(), retryAt: 0 };
    return;
  }
  cursor ??= session.peek()?.cursor ?? null;
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const path = toAddress(`/ws${cursor === null ? "" : `?cursor=${cursor}`}`);
  const ours = new WebSocket(`${scheme}://${location.host}${path}`);
  socket = ours;
  ours.onopen = () => {
    if (attempts > 0) reconnections.value += 1;
    attempts = 0;
    liveConnection.value = { state: "live", since: Date.now(), retryAt: 0 };
  };
  ours.onmessage = (message) => dispatch(JSON.parse(String(message.data)) as ServerEvent);
  ours.onclose = () => {
    if (socket !== ours) return;
    const wait = Math.min(10_000, 500 * 2 ** attempts) * (0.75 + Math.random() / 2);
    attempts += 1;
    const since = liveConnection.value.state === "lost" ? liveConnection.value.since : Date.now();
    liveConnection.value = { state: "lost", since, retryAt: Date.now() + wait };
    timer = window.setTimeout(connect, wait);
    if (attempts > 1) api("/v1/session").catch(() => undefined); // a session that has ended leads to the login page
  };
}

function dispatch(event: ServerEvent): void {
  if (typeof event.seq !== "number" || (cursor !== null && event.seq <= cursor)) return;
  cursor = event.seq;
  for (const [listener, prefixes] of listeners) {
    if (event.type === "gap" || prefixes.some((prefix) => event.type.startsWith(prefix))) listener(event);
  }
}

addEventListener("online", () => liveConnection.value.state === "lost" && connect());
