/** Marks the words of a search in a message, without changing what is drawn there. */
import { markWords } from "./mark-words";

const NAME = "chat-hit";

/** Marks them now and whenever more of the message is drawn; the returned function takes the marks away. */
export function markHits(message: HTMLElement, search: string): () => void {
  if (!search || typeof Highlight === "undefined") return () => undefined;
  const mark = () => CSS.highlights.set(NAME, new Highlight(...findRanges(message, search)));
  const watching = new MutationObserver(mark);
  watching.observe(message, { childList: true, subtree: true, characterData: true });
  mark();
  return () => {
    watching.disconnect();
    CSS.highlights.delete(NAME);
  };
}

function findRanges(message: HTMLElement, search: string): Range[] {
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(message, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement?.closest(".chat-foot")) continue;
    let from = 0;
    for (const { text, hit } of markWords(node.textContent ?? "", search)) {
      if (hit) {
        const range = new Range();
        range.setStart(node, from);
        range.setEnd(node, from + text.length);
        ranges.push(range);
      }
      from += text.length;
    }
  }
  return ranges;
}
