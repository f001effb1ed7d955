/** Text as the server draws it. While a text grows it is drawn again and again, never twice at once, at most four times
 * a second, and less often when drawing takes long; at its end once more, as a whole. What was drawn is remembered. */
import { batch, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { RenderedReply } from "toolyard-client";
import { api } from "../../lib/api";
import { language } from "../../lib/language";

/** What shows a drawn text: in a file of its own, because an empty chat does not need it. No text counts as drawn before
 * it is there. */
export let DrawnText: (typeof import("./drawn-text"))["DrawnText"] | null = null;
export async function loadDrawnText(): Promise<void> {
  DrawnText ??= (await import("./drawn-text")).DrawnText;
}

const LEAST_MS = 250;
const KEPT = 8_000_000; // characters
const AT_ONCE = 3;
const cache = new Map<string, RenderedReply>();
const line: (() => void)[] = [];
let size = 0;
let busy = 0;

async function renderText(text: string, kind: "auto" | "markdown", partial: boolean): Promise<RenderedReply> {
  const lang = language.peek() === "zh" ? "zh" : "en";
  const key = `${lang} ${kind} ${text}`;
  const before = cache.get(key);
  if (before) return before;
  while (!partial && busy >= AT_ONCE) await new Promise<void>((free) => line.push(free));
  busy++;
  try {
    const body = { text, to: "html", kind, partial, lang };
    const [drawn] = await Promise.all([api<RenderedReply>("/v1/reply/render", { body }), loadDrawnText()]);
    if (!partial) cacheRendered(key, drawn);
    return drawn;
  } finally {
    busy--;
    line.shift()?.();
  }
}

function cacheRendered(key: string, drawn: RenderedReply): void {
  cache.set(key, drawn);
  size += key.length + drawn.rendered.length;
  for (const [old, one] of cache) {
    if (size <= KEPT || old === key) break;
    cache.delete(old);
    size -= old.length + one.rendered.length;
  }
}

export interface RenderOptions {
  growing: boolean;
  /** It broke off and stays so. */ cut: boolean;
  /** Somebody can see it. */ visible: boolean;
  kind: "auto" | "markdown";
}
/** Null until it was drawn for the first time, "failed" when it cannot be; and whether more of it is to be drawn. */
export function useRendered(
  text: string,
  { growing, cut, visible, kind }: RenderOptions,
): [RenderedReply | "failed" | null, boolean] {
  const shown = useSignal<RenderedReply | "failed" | null>(null);
  const whole = useSignal(false);
  const latest = useRef({ text, growing, cut, kind });
  latest.current = { text, growing, cut, kind };
  const work = useRef({ on: false, at: 0, took: 0, timer: 0, done: "", gone: false });
  const lang = language.value;
  const step = useRef(() => {});
  step.current = () => {
    const state = work.current,
      { text, growing, cut, kind } = latest.current;
    const key = `${language.peek()} ${kind} ${growing} ${cut} ${text}`;
    if (state.gone || state.on || state.timer || state.done === key) return;
    const wait = growing ? state.at + Math.max(LEAST_MS, 3 * state.took) - Date.now() : 0;
    if (wait > 0)
      return void (state.timer = window.setTimeout(() => {
        state.timer = 0;
        step.current();
      }, wait));
    state.on = true;
    state.at = Date.now();
    renderText(text, kind, growing || cut)
      .then(
        (drawn) =>
          batch(() => {
            shown.value = drawn;
            whole.value = !growing;
          }),
        () => {
          if (!growing)
            batch(() => {
              shown.value = shown.peek() ?? "failed";
              whole.value = true;
            });
        },
      )
      .finally(() => {
        Object.assign(state, { on: false, took: Date.now() - state.at, done: key });
        step.current();
      });
  };
  useEffect(() => {
    if (!visible) return;
    if (!growing) {
      clearTimeout(work.current.timer);
      work.current.timer = 0;
    }
    step.current();
  }, [text, growing, cut, visible, kind, lang]);
  useEffect(
    () => () => {
      clearTimeout(work.current.timer);
      work.current.gone = true;
    },
    [],
  );
  const before = cut || shown.value ? null : cache.get(`${lang === "zh" ? "zh" : "en"} ${kind} ${text}`);
  return before ? [before, growing] : [shown.value, growing || (!whole.value && shown.value !== "failed")];
}
