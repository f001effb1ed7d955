/** Formulas by KaTeX, loaded when the first one comes. Until then, and for those who listen, the server's MathML stands
 * there. KaTeX only writes its visual form: its MathML sets style attributes, which the page's policy forbids. */
import { copyText } from "../../lib/copy";
import { showToast } from "../../lib/toast";
import { CopyButton } from "../button";
import { mount } from "./mount";
import { words } from "./words";

type Katex = typeof import("katex").default;
const LONGEST = 10_000;
const DEEPEST = 300; // nodes inside each other: laying out many more takes a browser down
let katex: Katex | null = null;
let coming: Promise<Katex | null> | null = null;

export function drawMath(block: HTMLElement): void {
  const formulas = [
    ...(block.matches(".math[data-tex]") ? [block] : []),
    ...block.querySelectorAll<HTMLElement>(".math[data-tex]"),
  ];
  if (!formulas.length) return;
  if (katex) return formulas.forEach((one) => renderFormula(katex!, one));
  coming ??= Promise.all([import("katex"), import("katex/dist/katex.min.css")]).then(
    ([module]) => (katex = module.default),
    () => (coming = null),
  );
  void coming.then((ready) => {
    if (ready) formulas.forEach((one) => renderFormula(ready, one));
  });
}

function renderFormula(by: Katex, node: HTMLElement): void {
  const tex = node.dataset["tex"] ?? "";
  const display = node.classList.contains("display");
  const read = !node.classList.contains("unread");
  const box = document.createElement("span");
  box.className = "formula";
  try {
    if (tex.length > LONGEST) throw new Error(words().formulaLong);
    by.render(tex, box, {
      displayMode: display,
      output: "html",
      trust: false,
      strict: "ignore",
      maxExpand: 1000,
      maxSize: 20,
      throwOnError: true,
    });
    if (isDeep(box, DEEPEST)) throw new Error(words().formulaDeep);
    const spoken = document.createElement("span");
    spoken.className = "hush";
    if (read) spoken.append(...node.childNodes);
    else spoken.textContent = tex;
    node.replaceChildren(box, spoken);
    if (display) box.tabIndex = 0;
  } catch (error) {
    if (!read) {
      node.querySelector(":scope > .note:first-child")?.remove(); // the fault says more
      node.append(formulaError(error));
    }
  }
  if (display) {
    const host = node.appendChild(document.createElement("span"));
    host.className = "acts";
    mount(host, <CopyButton label={words().copyTex} text={tex} />);
  } else {
    node.title = words().copyTex;
    node.onclick = () => void copyText(tex).then((copied) => copied && showToast(words().copiedTex));
  }
}

function isDeep(node: Element, left: number): boolean {
  return left === 0 || [...node.children].some((child) => isDeep(child, left - 1));
}

function formulaError(error: unknown): HTMLElement {
  const note = document.createElement("span");
  note.className = "card warning";
  note.setAttribute("role", "note");
  const message =
    error instanceof Error ? error.message.replace(/^KaTeX parse error: /, "").replaceAll("\u0332", "") : String(error);
  note.textContent = `${words().formulaFailed}: ${message.slice(0, 300)}`;
  return note;
}
