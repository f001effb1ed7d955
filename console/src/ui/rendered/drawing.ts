/** The frame that draws diagrams, one at a time. It has no origin and no network; when a diagram takes too long, the
 * frame is thrown away with it. What was drawn is kept for as long as it is likely to be asked for again. */
import { isDrawing, type Tree } from "./svg";

export interface Drawing {
  tree: Tree;
  width: number;
  height: number;
}
export type Fault = "slow" | "large" | "frame";
export class NotDrawn extends Error {
  constructor(
    readonly fault: Fault | "source",
    message = "",
  ) {
    super(message);
  }
}
interface Asked {
  id: number;
  source: string;
  dark: boolean;
  done: (drawing: Drawing) => void;
  failed: (error: NotDrawn) => void;
}
interface Answer {
  id?: number;
  ready?: true;
  missing?: true;
  tree?: unknown;
  width?: number;
  height?: number;
  error?: string;
}

const LONGEST = 50_000;
const DRAW_MS = 3_000;
const LOAD_MS = 20_000;
const KEPT = 80;
const kept = new Map<string, Promise<Drawing>>();
const queue: Asked[] = [];
let frame: HTMLIFrameElement | null = null;
let ready = false;
let now: Asked | null = null;
let timer = 0;
let count = 0;

export function drawing(source: string, dark: boolean): Promise<Drawing> {
  if (source.length > LONGEST) return Promise.reject(new NotDrawn("large"));
  const key = `${dark ? "d" : "l"}${source}`;
  const before = kept.get(key);
  if (before) return before;
  const made = new Promise<Drawing>((done, failed) => queue.push({ id: ++count, source, dark, done, failed }));
  kept.set(key, made);
  made.catch((error: NotDrawn) => {
    if (error.fault !== "source") kept.delete(key);
  });
  if (kept.size > KEPT) kept.delete(kept.keys().next().value!);
  next();
  return made;
}

function next(): void {
  if (now || !queue.length) return;
  now = queue.shift()!;
  if (frame && ready) return post();
  timer = window.setTimeout(() => give(new NotDrawn("frame")), LOAD_MS);
  if (!frame) open();
}

/** The time counts from here: a frame that is busy drawing could not even say that it has begun. */
function post(): void {
  clearTimeout(timer);
  if (!now) return;
  timer = window.setTimeout(() => give(new NotDrawn("slow")), DRAW_MS);
  frame?.contentWindow?.postMessage({ id: now.id, source: now.source, dark: now.dark }, "*");
}

function open(): void {
  ready = false;
  frame = document.createElement("iframe");
  frame.className = "drawing-frame";
  frame.setAttribute("sandbox", "allow-scripts");
  frame.setAttribute("aria-hidden", "true");
  frame.tabIndex = -1;
  frame.title = "";
  frame.src = "/console/draw/frame.html";
  document.body.append(frame);
}

/** Nothing came in time: whatever the frame is doing ends here. */
function give(error: NotDrawn): void {
  frame?.remove();
  frame = null;
  settle(() => now!.failed(error));
}

function settle(tell: () => void): void {
  clearTimeout(timer);
  if (now) tell();
  now = null;
  next();
}

addEventListener("message", (event: MessageEvent<Answer>) => {
  if (!frame || event.source !== frame.contentWindow || typeof event.data !== "object" || event.data === null) return;
  const said = event.data;
  if (said.ready) {
    ready = true;
    post();
  } else if (said.missing) {
    give(new NotDrawn("frame"));
  } else if (now && said.id === now.id) {
    if (isDrawing(said.tree))
      settle(() =>
        now!.done({ tree: said.tree as Tree, width: Number(said.width) || 1, height: Number(said.height) || 1 }),
      );
    else if (said.tree !== undefined) give(new NotDrawn("large"));
    else settle(() => now!.failed(failure(String(said.error ?? ""))));
  }
});

function failure(message: string): NotDrawn {
  if (/^too large$|Maximum text size|Edge limit exceeded/i.test(message)) return new NotDrawn("large");
  return new NotDrawn("source", message);
}
