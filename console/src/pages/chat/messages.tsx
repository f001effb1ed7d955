/** The messages, one under the other. The view stays at the newest only while it is there; else a button leads to it.
 * Long ones come in chapters. */
import { useSignal } from "@preact/signals";
import { useCallback, useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Button } from "../../ui/button";
import { Chapter, CHAPTER } from "./chapter";
import type { Conversation } from "./conversation";
import { retry } from "./turn";
import { usePrint } from "./use-print";
import { words } from "./words";

const CLOSE = 48; // pixels from the end that still are the end
const HOLD_MS = 600;

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
  const onAgain = useCallback(() => {
    atEnd.current = true;
    void retry(conversation);
  }, [conversation]);
  useEffect(() => {
    const node = view.current!;
    let top = node.scrollTop;
    const look = () => {
      const left = node.scrollHeight - node.scrollTop - node.clientHeight;
      // What grows below takes nobody away from the end; only going up does.
      if (left < CLOSE) atEnd.current = true;
      else if (node.scrollTop < top - 2) atEnd.current = false;
      top = node.scrollTop;
      away.value = !atEnd.current && left > node.clientHeight / 2;
    };
    // What a person opens grows downwards, also at the end: the thing they pressed stays under their finger. However slow
    // the machine is, what the press brought has been drawn two frames later.
    let held = 0;
    const press = () => {
      const ours = ++held;
      const release = () => {
        if (held === ours) held = 0;
      };
      setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(release)), HOLD_MS);
    };
    const grown = new ResizeObserver(() => {
      if (held) atEnd.current = node.scrollHeight - node.scrollTop - node.clientHeight < CLOSE;
      if (atEnd.current) toEnd();
      else look();
      top = node.scrollTop; // what shrinks pulls the view up as well, and that is nobody's doing
    });
    grown.observe(inner.current!);
    grown.observe(node);
    node.addEventListener("scroll", look, { passive: true });
    node.addEventListener("click", press, true);
    return () => {
      grown.disconnect();
      node.removeEventListener("scroll", look);
      node.removeEventListener("click", press, true);
    };
  }, [away, toEnd]);
  usePrint(view);
  const chapters = Math.ceil(cells.length / CHAPTER);
  const mine = cells.filter((one) => one.at.peek().role === "user").length;
  useLayoutEffect(() => {
    atEnd.current = true;
    toEnd();
  }, [mine, conversation, toEnd]);
  return (
    <div class="chat-view">
      <div class="chat-scroll" ref={view} tabIndex={0} role="log" aria-label={t.chat} aria-live="off">
        <div class="chat-inner" ref={inner}>
          {Array.from({ length: chapters }, (_, at) => (
            <Chapter
              key={at}
              cells={cells.slice(at * CHAPTER, (at + 1) * CHAPTER)}
              last={at === chapters - 1}
              onAgain={onAgain}
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
