/** What running calls report: how far they are, and their last lines. Live by events, kept until the call has ended. */
import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { subscribe, type ServerEvent } from "./events";

export interface Progress {
  done: number | null; // a fraction; null: nobody knows
  lines: readonly string[];
}

const MAX_LINES = 200; // of one call
const MAX_CALLS = 200;
const NOTHING: Progress = { done: null, lines: [] };
const known = new Map<string, Signal<Progress>>();

/** The progress of a call, which changes while it runs. */
export function progressOf(id: string): ReadonlySignal<Progress> {
  return signalOf(id);
}

/** Add the lines of a report to those before. */
export function addReport(before: Progress, report: Record<string, unknown>): Progress {
  const text = typeof report.text === "string" ? report.text : "";
  const done = typeof report.done === "number" ? Math.min(1, Math.max(0, report.done)) : before.done;
  return { done, lines: [...before.lines, ...text.split("\n").filter(Boolean)].slice(-MAX_LINES) };
}

/** Take in an event of a call. */
export function handleCallEvent(event: ServerEvent): void {
  const id = event.data.id;
  if (typeof id !== "string") return;
  if (event.type === "call.progress") {
    const one = signalOf(id);
    one.value = addReport(one.peek(), event.data);
  } else if (event.type === "call.finished") {
    const one = known.get(id);
    if (one) one.value = NOTHING;
    known.delete(id);
  }
}

function signalOf(id: string): Signal<Progress> {
  let one = known.get(id);
  if (!one) {
    known.set(id, (one = signal<Progress>(NOTHING)));
    if (known.size > MAX_CALLS) known.delete(known.keys().next().value!);
  }
  return one;
}

subscribe(["call.progress", "call.finished"], handleCallEvent);
