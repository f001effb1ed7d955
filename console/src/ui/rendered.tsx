/** A model's text, rendered by the server and inserted here: the only place where HTML becomes part of the page. It
 * passes an allow-list first (`clean`), unchanged blocks keep their nodes while more is written (`patch`), and then
 * code, formulas, diagrams, charts, tables and pictures elsewhere get what a person does with them. */
import "./rendered.css";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useEvent } from "../lib/use-event";
import { drawChart } from "./rendered/chart";
import { blocksOf } from "./rendered/clean";
import { drawCode } from "./rendered/code";
import { drawDiagram } from "./rendered/diagram";
import { drawMath } from "./rendered/math";
import { clearChildren, patchChildren } from "./rendered/patch";
import { drawRemote } from "./rendered/remote";
import { words } from "./rendered/words";

/** Parts whose direction is that of their own text; a part inside another follows that one. */
const READS = "p, h1, h2, h3, h4, h5, h6, ul, ol, dl, blockquote, table, summary, figcaption";
const DIRECTED = "[dir=auto]";

/** `more` adds what only one page knows, to each new block. */
export function Rendered({
  html,
  streaming = false,
  more,
}: {
  html: string;
  streaming?: boolean;
  more?: (block: HTMLElement) => void;
}) {
  const root = useRef<HTMLDivElement>(null);
  const finish = useEvent((block: HTMLElement) => {
    enhance(block);
    more?.(block);
  });
  useLayoutEffect(() => patchChildren(root.current!, blocksOf(html), finish), [finish, html]);
  useLayoutEffect(
    () => () => {
      if (root.current) clearChildren(root.current);
    },
    [],
  );
  return <div ref={root} class="rendered" aria-busy={streaming} />;
}

function enhance(block: HTMLElement): void {
  queryAll(block, READS).forEach((part) => {
    if (!part.parentElement?.closest(`.rendered ${DIRECTED}`)) part.dir = "auto";
  });
  queryAll(block, "figure.code").forEach(drawCode);
  queryAll(block, "figure.mermaid").forEach(drawDiagram);
  queryAll(block, "figure.chart[data-chart]").forEach(drawChart);
  queryAll(block, ".slides").forEach((frame) => {
    frame.tabIndex = 0;
    frame.setAttribute("role", "group"); // a landmark of each table would be too much
    frame.setAttribute("aria-label", words().table);
  });
  queryAll(block, "pre.source").forEach((pre) => {
    pre.tabIndex = 0;
  });
  queryAll(block, "span.task").forEach((box) => {
    box.setAttribute("aria-disabled", "true");
    box.setAttribute("aria-label", box.closest("li")?.textContent?.trim().slice(1, 120) ?? "");
  });
  queryAll(block, ".pending").forEach((box) =>
    box.append(labelledElement("now", words().writing), labelledElement("never", words().unfinished)),
  );
  queryAll(block, "a[href^=http]").forEach((link) => {
    // On paper an address is printed beside its link, unless the link says it already.
    if (isAddress(link.textContent ?? "", link.getAttribute("href")!)) link.dataset["address"] = "";
  });
  drawMath(block);
  drawRemote(block);
}

function queryAll(block: HTMLElement, selector: string): HTMLElement[] {
  return [...(block.matches(selector) ? [block] : []), ...block.querySelectorAll<HTMLElement>(selector)];
}

function isAddress(text: string, href: string): boolean {
  const bare = (address: string) => address.trim().replace(/^https?:\/\/|\/$/g, "");
  return bare(text) === bare(href);
}

function labelledElement(name: string, text: string): HTMLElement {
  const label = document.createElement("span");
  label.className = name;
  label.textContent = text;
  return label;
}
