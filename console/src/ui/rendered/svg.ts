/** A drawing from the frame as nodes of the page. Only these shapes and attributes are built; an address inside a
 * drawing leads to another part of the same drawing, and its ids cannot meet those of the page. */
export type Tree = readonly [
  tag: string,
  attributes: Readonly<Record<string, string>>,
  children: readonly (Tree | string)[],
];

const SPACE = "http://www.w3.org/2000/svg";
const SHAPES = new Set(
  (
    "svg g path rect circle ellipse line polyline polygon text tspan textPath defs marker clipPath " +
    "mask linearGradient radialGradient stop pattern symbol use title desc"
  ).split(" "),
);
const ATTRIBUTES = new Set(
  (
    "viewBox x y x1 y1 x2 y2 cx cy r rx ry fx fy d points width height transform gradientTransform " +
    "gradientUnits patternUnits patternTransform clipPathUnits maskUnits offset dx dy rotate " +
    "textLength lengthAdjust startOffset refX refY markerWidth markerHeight markerUnits orient " +
    "preserveAspectRatio pathLength fill fill-opacity fill-rule clip-rule stroke stroke-width " +
    "stroke-opacity stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin " +
    "stroke-miterlimit opacity font-size font-weight font-style text-anchor dominant-baseline " +
    "alignment-baseline visibility display stop-color stop-opacity text-decoration-line " +
    "letter-spacing word-spacing"
  ).split(" "),
);
const REFERS = new Set(["marker-start", "marker-mid", "marker-end", "clip-path", "mask", "fill", "stroke"]);
const URL_PART = /^url\(["']?#([\w:.-]{1,200})["']?\)$/;
const ID = /^[\w:.-]{1,200}$/;
const LENGTHS = new Set(["width", "height", "r", "rx", "ry", "markerWidth", "markerHeight", "textLength"]);
const NO_NUMBER = /NaN|undefined|Infinity/;
const DEEPEST = 80;
const MOST_NODES = 20_000;
const MOST_SIGNS = 8_000_000;
const MOST_COPIES = 50; // one inside another they are drawn once for each way to them
let count = 0;

/** True if the value from the frame is a drawing of a bounded size: anything that ran in there may have sent it. */
export function isDrawing(given: unknown): given is Tree {
  const waiting = [given];
  let signs = 0,
    copies = 0;
  for (let nodes = 0; waiting.length; nodes++) {
    const one = waiting.pop();
    if (nodes > MOST_NODES || signs > MOST_SIGNS) return false;
    if (typeof one === "string") {
      signs += one.length;
      continue;
    }
    if (
      !Array.isArray(one) ||
      typeof one[0] !== "string" ||
      typeof one[1] !== "object" ||
      one[1] === null ||
      !Array.isArray(one[2]) ||
      one[2].length > MOST_NODES
    )
      return false;
    if (one[0].toLowerCase() === "use" && ++copies > MOST_COPIES) return false;
    for (const value of Object.values(one[1] as Record<string, unknown>)) signs += String(value).length;
    for (const inner of one[2]) waiting.push(inner);
  }
  return signs <= MOST_SIGNS;
}

export function buildSvg(tree: Tree): SVGSVGElement {
  const made = buildNode(tree, `drawing-${++count}-`, 0);
  if (!(made instanceof SVGSVGElement)) throw new Error("a drawing begins with svg");
  return made;
}

function buildNode(tree: Tree, prefix: string, depth: number): SVGElement | null {
  const [tag, attributes, children] = tree;
  if (!SHAPES.has(tag) || depth > DEEPEST) return null;
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) {
    const cleaned = cleanAttribute(name, String(value), prefix);
    if (cleaned !== null) made.setAttribute(name === "xlink:href" ? "href" : name, cleaned);
  }
  for (const child of children) {
    const inner = typeof child === "string" ? document.createTextNode(child) : buildNode(child, prefix, depth + 1);
    if (inner) made.append(inner);
  }
  return made;
}

function cleanAttribute(name: string, value: string, prefix: string): string | null {
  if (name === "id") return ID.test(value) ? prefix + value : null;
  if (name === "href" || name === "xlink:href")
    return /^#[\w:.-]{1,200}$/.test(value) ? `#${prefix}${value.slice(1)}` : null;
  if (/url\s*\(/i.test(value) || /[\\@]/.test(value)) {
    const part = URL_PART.exec(value.replace(/\s+none$/, ""));
    return REFERS.has(name) && part ? `url(#${prefix}${part[1]})` : null;
  }
  if (!ATTRIBUTES.has(name) || NO_NUMBER.test(value)) return null;
  return LENGTHS.has(name) && value.trim().startsWith("-") ? "0" : value;
}

/** The same drawing as a file of its own. */
export function toSvgFile(svg: SVGSVGElement, background: string, font: string): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const view = (copy.getAttribute("viewBox") ?? "0 0 100 100").split(" ");
  copy.removeAttribute("class");
  copy.setAttribute("xmlns", SPACE);
  copy.setAttribute("width", view[2]!);
  copy.setAttribute("height", view[3]!);
  copy.setAttribute("font-family", font);
  const ground = document.createElementNS(SPACE, "rect");
  for (const [name, value] of Object.entries({
    x: view[0]!,
    y: view[1]!,
    width: view[2]!,
    height: view[3]!,
    fill: background,
  }))
    ground.setAttribute(name, value);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}
