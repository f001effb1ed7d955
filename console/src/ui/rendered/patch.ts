/** New HTML into the page, keeping every block that has not changed: what was drawn stays, nothing flickers, and only
 * the end of a growing text is made anew. */
import { unmount } from "./mount";

const sources = new WeakMap<Element, string>();

export function patchChildren(
  root: HTMLElement,
  blocks: readonly HTMLElement[],
  enhance: (block: HTMLElement) => void,
): void {
  const old = new Map<string, HTMLElement[]>();
  for (const node of [...root.children] as HTMLElement[]) {
    const source = sources.get(node) ?? "";
    old.set(source, [...(old.get(source) ?? []), node]);
  }
  const fresh: HTMLElement[] = [];
  const wanted = blocks.map((block) => {
    const source = block.outerHTML;
    const reused = old.get(source)?.shift();
    if (reused) return reused;
    sources.set(block, source);
    fresh.push(block);
    return block;
  });
  for (const left of old.values())
    for (const node of left) {
      unmount(node);
      node.remove();
    }
  wanted.forEach((node, at) => {
    if (root.children[at] !== node) root.insertBefore(node, root.children[at] ?? null);
  });
  fresh.forEach(enhance);
}

export function clearChildren(root: HTMLElement): void {
  for (const node of [...root.children]) {
    unmount(node);
    node.remove();
  }
}
