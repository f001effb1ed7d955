/** The messages, one under the other. The view stays at the newest only while it is there; else a button leads to it.
 * Long ones come in chapters. */
import { useSignal } from "@preact/signals";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { queryParam, setQuery } from "../../lib/router";
import { Button, toastError } from "../../ui/button";
import { branchesAt } from "./branches";
import { Chapter, CHAPTER } from "./chapter";
import { showBranch, type Conversation } from "./conversation";
import type { MessageActions } from "./message";
import { markHits } from "./mark-hits";
import { regenerate, resend } from "./turn";
import { usePrint } from "./use-print";
import { words } from "./words";

const CLOSE = 48; // pixels from the end that still are the end
const AWAY = 96; // pixels from the end at which a button leads to it
const ABOVE = 24; // pixels left free above a message that is scrolled to
const HOLD_MS = 600;
const SHOW_MS = 2500; // for which a message that was searched for is marked
const MOVES = ["wheel", "touchstart", "keydown", "pointerdown"]; // by which somebody leaves a message

export function Messages({ conversation }: { conversation: Conversation }) {
  const t = words();
  const view = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const away = useSignal(false);
  const cells = conversation.cells.value;
  const toEnd = useCallback(() => {
    const node = view.current;
    if (node) node.scrollTop = node.scrollHeight;
  }, []);
  const walked = useRef<{ to: string; top: number; step: -1 | 1 } | null>(null);
  const held = useRef(""); // the message that stays in sight until somebody moves, whatever is drawn around it
  const wanted = queryParam("at");
  const find = useCallback(
    (id: string) => view.current?.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"]`) ?? null,
    [],
  );
  const actions = useMemo<MessageActions>(
    () => ({
      onAgain: (reply) => {
        atEnd.current = true;
        void regenerate(conversation, reply);
      },
      onResend: (message, text) => {
        void resend(conversation, message, text);
        // The form that had the focus is gone; one goes on where one writes.
        document.querySelector<HTMLElement>(".chat-compose textarea")?.focus({ preventScroll: true });
      },
      onWalk: (cell, step) => {
        const branches = branchesAt(conversation.all.peek(), cell);
        const to = branches[branches.findIndex((one) => one.id === cell.id) + step];
        if (!to) return;
        walked.current = { to: to.id, top: find(cell.id)?.getBoundingClientRect().top ?? 0, step };
        showBranch(conversation, to.id);
        const leaf = conversation.cells.peek().at(-1)?.id ?? "";
        conversation.change({ leaf }).catch(toastError);
      },
    }),
    [conversation, find],
  );
  useEffect(() => {
    const node = view.current!;
    let top = node.scrollTop;
    const look = () => {
      const left = node.scrollHeight - node.scrollTop - node.clientHeight;
      // What grows below takes nobody away from the end; only going up does.
      if (held.current) atEnd.current = false;
      else if (left < CLOSE) atEnd.current = true;
      else if (node.scrollTop < top - 2) atEnd.current = false;
      top = node.scrollTop;
      away.value = !atEnd.current && left > AWAY;
    };
    // What a person opens grows downwards, also at the end: the thing they pressed stays under their finger. However slow
    // the machine is, what the press brought has been drawn two frames later.
    let pressed = 0;
    const press = (event: Event) => {
      // An answer to an approval opens nothing: the reply goes on, and the view with it.
      if (event.target instanceof Element && event.target.closest(".apr-actions")) return;
      const ours = ++pressed;
      const release = () => {
        if (pressed === ours) pressed = 0;
      };
      setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(release)), HOLD_MS);
    };
    const grown = new ResizeObserver(() => {
      if (pressed) atEnd.current = node.scrollHeight - node.scrollTop - node.clientHeight < CLOSE;
      if (held.current) scrollTo(node, find(held.current));
      else if (atEnd.current) toEnd();
      else look();
      top = node.scrollTop; // what shrinks pulls the view up as well, and that is nobody's doing
    });
    grown.observe(inner.current!);
    grown.observe(node);
    node.addEventListener("scroll", look, { passive: true });
    node.addEventListener("click", press, true);
    const release = () => (held.current = "");
    for (const type of MOVES) node.addEventListener(type, release, { passive: true });
    return () => {
      grown.disconnect();
      node.removeEventListener("scroll", look);
      node.removeEventListener("click", press, true);
      for (const type of MOVES) node.removeEventListener(type, release);
    };
  }, [away, find, toEnd]);
  usePrint(view);
  const chapters = Math.ceil(cells.length / CHAPTER);
  const asked = cells.findLast((one) => one.at.peek().role === "user")?.id;
  useLayoutEffect(() => {
    if (walked.current || held.current) return;
    atEnd.current = true;
    toEnd();
  }, [asked, conversation, toEnd]);
  // Another branch begins where the one before it did, under the same finger and with the focus on the same button.
  useLayoutEffect(() => {
    const walk = walked.current,
      node = walk && find(walk.to);
    walked.current = null;
    if (!walk || !node) return;
    atEnd.current = false;
    view.current!.scrollTop += node.getBoundingClientRect().top - walk.top;
    const buttons = [...node.querySelectorAll<HTMLButtonElement>(".chat-branches button")];
    (walk.step < 0 ? buttons : buttons.toReversed()).find((one) => !one.disabled)?.focus({ preventScroll: true });
  }, [cells, find]);
  const hasWanted = conversation.all.value.some((one) => one.id === wanted);
  useLayoutEffect(() => {
    if (!hasWanted) return;
    if (!conversation.cells.peek().some((one) => one.id === wanted)) showBranch(conversation, wanted);
    held.current = wanted;
    atEnd.current = false;
    const frame = requestAnimationFrame(() => {
      const node = find(wanted);
      scrollTo(view.current!, node);
      node?.focus({ preventScroll: true });
      node?.animate(
        { backgroundColor: ["var(--accent-soft)", "transparent"] },
        { duration: SHOW_MS, easing: "ease-in" },
      );
    });
    return () => cancelAnimationFrame(frame);
  }, [wanted, hasWanted, conversation, find]);
  const search = queryParam("q");
  useEffect(() => {
    const node = hasWanted && find(wanted);
    return node ? markHits(node, search) : undefined;
  }, [wanted, hasWanted, search, cells, find]);
  // Whoever goes on writing is no longer at what was searched for.
  const running = conversation.running.value;
  useEffect(() => {
    if (!running || !queryParam("at")) return;
    held.current = "";
    setQuery({ at: null });
  }, [running]);
  return (
    <div class="chat-view">
      <div class="chat-scroll" ref={view} tabIndex={0} role="log" aria-label={t.chat} aria-live="off">
        <div class="chat-inner" ref={inner}>
          {Array.from({ length: chapters }, (_, at) => (
            <Chapter
              key={at}
              conversation={conversation}
              cells={cells.slice(at * CHAPTER, (at + 1) * CHAPTER)}
              last={at === chapters - 1}
              open={cells.slice(at * CHAPTER, (at + 1) * CHAPTER).some((one) => one.id === wanted)}
              actions={actions}
            />
          ))}
        </div>
      </div>
      {away.value && (
        <div class="chat-newest">
          <Button
            sign="down"
            onClick={() => {
              atEnd.current = true;
              toEnd();
            }}
          >
            {t.newest}
          </Button>
        </div>
      )}
    </div>
  );
}

function scrollTo(view: HTMLElement, node: HTMLElement | null): void {
  if (node) view.scrollTop += node.getBoundingClientRect().top - view.getBoundingClientRect().top - ABOVE;
}
