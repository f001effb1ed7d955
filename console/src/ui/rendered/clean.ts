/** The server's HTML as nodes, by an allow-list that is the same as the server's own: whatever else were in it, a
 * script, a handler, a style, an address elsewhere, does not reach the page. */
import createDOMPurify from "dompurify";

const TAGS =
  "a article aside audio bdi blockquote br button code dd del details div dl dt em figcaption figure " +
  "h1 h2 h3 h4 h5 h6 hr img li ol p pre s section span strong summary sup table tbody td th thead tr " +
  "ul video";
const MATH_TAGS =
  "math menclose merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms " +
  "mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none";
const ATTRIBUTES =
  "class href id rel target lang start scope data-tex data-kind role aria-checked data-chart type " +
  "data-src src alt title width height controls preload";
const MATH_ATTRIBUTES =
  "accent accentunder align columnalign columnlines columnspacing columnspan depth display " +
  "displaystyle fence form frame height largeop linebreak linethickness lspace mathbackground " +
  "mathcolor mathsize mathvariant maxsize minsize movablelimits notation rowlines rowspacing rowspan " +
  "rspace scriptlevel separator stretchy symmetric voffset width";

const CLASS = /^[A-Za-z][A-Za-z0-9-]{0,40}(?: [A-Za-z][A-Za-z0-9-]{0,40}){0,5}$/;
const FOOTNOTE = /^fn(?:ref)?-[a-z][0-9a-f]{8}-[0-9]{1,6}(?::[0-9]{1,6})?$/;
const ROLE = /^(?:checkbox|note)$/;
const LINK = /^(?:https?:\/\/|mailto:)/i;
const WORD = /^[a-z0-9-]{1,30}$/;
const MEDIA: Record<string, RegExp> = {
  IMG: /^data:image\/(?:png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/]+={0,2}$/,
  AUDIO: /^data:audio\/(?:mpeg|wav|ogg|mp4|webm);base64,[A-Za-z0-9+/]+={0,2}$/,
  VIDEO: /^data:video\/(?:mp4|webm);base64,[A-Za-z0-9+/]+={0,2}$/,
};

const purify = createDOMPurify(window);
purify.addHook("afterSanitizeAttributes", (node) => {
  restrictAttribute(node, "class", (value) => CLASS.test(value));
  restrictAttribute(node, "id", (value) => FOOTNOTE.test(value));
  restrictAttribute(node, "role", (value) => ROLE.test(value));
  restrictAttribute(node, "data-kind", (value) => WORD.test(value));
  restrictAttribute(node, "data-src", (value) => node.tagName === "BUTTON" && LINK.test(value));
  restrictAttribute(node, "src", (value) => MEDIA[node.tagName]?.test(value) ?? false);
  restrictAttribute(
    node,
    "href",
    (value) => node.tagName === "A" && (LINK.test(value) || FOOTNOTE.test(value.replace(/^#/, ""))),
  );
  if (node.tagName !== "A") return;
  if (node.getAttribute("href")?.startsWith("#")) return node.removeAttribute("target");
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

function restrictAttribute(node: Element, name: string, allowed: (value: string) => boolean): void {
  const value = node.getAttribute(name);
  if (value !== null && !allowed(value)) node.removeAttribute(name);
}

/** The parts of a reply that stand one under the other: those of its content, and what comes before and after. */
export function blocksOf(html: string): HTMLElement[] {
  const made = purify.sanitize(html, {
    RETURN_DOM_FRAGMENT: true,
    ALLOWED_TAGS: `${TAGS} ${MATH_TAGS}`.split(" "),
    ALLOWED_ATTR: `${ATTRIBUTES} ${MATH_ATTRIBUTES}`.split(" "),
    // Every value would be read as an address otherwise; only these two are.
    ADD_URI_SAFE_ATTR: `${ATTRIBUTES} ${MATH_ATTRIBUTES}`
      .split(" ")
      .filter((name) => name !== "href" && name !== "src"),
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#fn|data:(?:image|audio|video)\/)/i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
  for (const table of made.querySelectorAll("table")) makeScrollable(table);
  const article = made.querySelector("article");
  const parts = [...(article ?? made).children] as HTMLElement[];
  return parts.flatMap((part) => (part.matches("div.content") ? ([...part.children] as HTMLElement[]) : [part]));
}

/** Wide tables scroll by themselves; the page does not. */
function makeScrollable(table: HTMLElement): void {
  const frame = document.createElement("div");
  frame.className = "slides";
  table.replaceWith(frame);
  frame.append(table);
}
