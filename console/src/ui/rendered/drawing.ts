/** The frame that draws diagrams, one at a time. It has no origin and no network; when a diagram takes too long, the
 * frame is thrown away with it. What was drawn is kept for as long as it is likely to be asked for again. */
import { toAddress } from "../../lib/base";
import { isDrawing, type Tree } from "./svg";

export interface Drawing {
  tree: Tree;
  width: number;
  height: number;
}
export type Fault = "slow" | "large" | "frame";
export class DrawingError extends Error {
  constructor(
    readonly fault: Fault | "source",
    message = "",
  ) {
    super(message);
  }
}
interface DrawRequest {
  id: number;
  source: string;
  dark: boolean;
  done: (drawing: Drawing) => void;
  failed: (error: DrawingError) => void;
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
const cache = new Map<string, Promise<Drawing>>();
const queue: DrawRequest[] = [];
let frame: HTMLIFrameElement | null = null;
let ready = false;
let now: DrawRequest | null = null;
let timer = 0;
let count = 0;

export function renderDiagram(source: string, dark: boolean): Promise<Drawing> {
  if (source.length > LONGEST) return Promise.reject(new DrawingError("large"));
  const key = `${dark ? "d" : "l"}${source}`;
  const before = cache.get(key);
  if (before) return before;
  const made = new Promise<Drawing>((done, failed) => queue.push({ id: ++count, source, dark, done, failed }));
  cache.set(key, made);
  made.catch((error: DrawingError) => {
    if (error.fault !== "source") cache.delete(key);
  });
  if (cache.size > KEPT) cache.delete(cache.keys().next().value!);
  startNext();
  return made;
}

function startNext(): void {
  if (now || !queue.length) return;
  now = queue.shift()!;
  if (frame && ready) return postRequest();
  timer = window.setTimeout(() => failCurrent(new DrawingError("frame")), LOAD_MS);
  if (!frame) openFrame();
}

/** The time counts from here: a frame that is busy drawing could not even say that it has begun. */
function postRequest(): void {
  clearTimeout(timer);
  if (!now) return;
  timer = window.setTimeout(() => failCurrent(new DrawingError("slow")), DRAW_MS);
  frame?.contentWindow?.postMessage({ id: now.id, source: now.source, dark: now.dark }, "*");
}

function openFrame(): void {
  ready = false;
  frame = document.createElement("iframe");
  frame.className = "drawing-frame";
  frame.setAttribute("sandbox", "allow-scripts");
  frame.setAttribute("aria-hidden", "true");
  frame.tabIndex = -1;
  frame.title = "";
  frame.src = toAddress("/console/draw/frame.html");
  document.body.append(frame);
}

/** Nothing came in time: whatever the frame is doing ends here. */
function failCurrent(error: DrawingError): void {
  frame?.remove();
  frame = null;
  settle(() => now!.failed(error));
}

function settle(tell: () => void): void {
  clearTimeout(timer);
  if (now) tell();
  now = null;
  startNext();
}

addEventListener("message", (event: MessageEvent<Answer>) => {
  if (!frame || event.source !== frame.contentWindow || typeof event.data !== "object" || event.data === null) return;
  const answer = event.data;
  if (answer.ready) {
    ready = true;
    postRequest();
  } else if (answer.missing) {
    failCurrent(new DrawingError("frame"));
  } else if (now && answer.id === now.id) {
    if (isDrawing(answer.tree))
      settle(() =>
        now!.done({ tree: answer.tree as Tree, width: Number(answer.width) || 1, height: Number(answer.height) || 1 }),
      );
    else if (answer.tree !== undefined) failCurrent(new DrawingError("large"));
    else settle(() => now!.failed(toDrawingError(String(answer.error ?? ""))));
  }
});

function toDrawingError(message: string): DrawingError {
  if (/^too large$|Maximum text size|Edge limit exceeded/i.test(message)) return new DrawingError("large");
  return new DrawingError("source", message);
}
