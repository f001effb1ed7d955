/** Living parts inside nodes that Preact does not own, and their end when the node goes. */
import { render, type ComponentChild } from "preact";

const MARK = "data-living";

export function mount(host: Element, what: ComponentChild): void {
  host.setAttribute(MARK, "");
  render(what, host);
}

export function unmount(block: Element): void {
  for (const host of [...(block.hasAttribute(MARK) ? [block] : []), ...block.querySelectorAll(`[${MARK}]`)])
    render(null, host);
}
