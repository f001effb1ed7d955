/** True once an element has come near the view: a long conversation renders only that. Once near, it stays rendered. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { isPrinting } from "../../lib/printing";

const waiting = new WeakMap<Element, () => void>();
const eyes = new WeakMap<Element, Map<number, IntersectionObserver>>();

/** Within `reach` pixels of what is seen. */
export function useNearView(node: { current: HTMLElement | null }, already: boolean, reach: number): boolean {
  const near = useSignal(already);
  useEffect(() => {
    const here = node.current,
      view = here?.closest(".chat-scroll");
    if (near.peek() || !here || !view) return;
    const eye = eyes.get(view)?.get(reach) ?? observeView(view, reach);
    waiting.set(here, () => {
      near.value = true;
      eye.unobserve(here);
    });
    eye.observe(here);
    return () => eye.unobserve(here);
  }, [near, node, reach]);
  return near.value || already || isPrinting.value;
}

function observeView(view: Element, reach: number): IntersectionObserver {
  const eye = new IntersectionObserver(
    (entries) =>
      entries.forEach((one) => {
        if (one.isIntersecting) waiting.get(one.target)?.();
      }),
    { root: view, rootMargin: `${reach}px 0px` },
  );
  eyes.set(view, (eyes.get(view) ?? new Map<number, IntersectionObserver>()).set(reach, eye));
  return eye;
}
