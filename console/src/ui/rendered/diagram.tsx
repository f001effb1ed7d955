/** A Mermaid diagram: drawn, or its source; a diagram that cannot be drawn says why and shows its source. Its stage has
 * the height that its source suggests from the beginning, so that nothing under it moves when the drawing comes. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { isDark } from "../../lib/theme";
import { diagrams } from "../../lib/display-options";
import { revealHidden } from "../../lib/hidden-characters";
import { CopyButton, IconButton } from "../button";
import { Dialog } from "../dialog";
import { Tabs } from "../tabs";
import { renderDiagram, DrawingError, type Drawing } from "./drawing";
import { sourceText, downloadText } from "./source-text";
import { mount } from "./mount";
import { buildSvg, toSvgFile } from "./svg";
import { words } from "./words";

export function drawDiagram(figure: HTMLElement): void {
  const pre = figure.querySelector<HTMLElement>("pre.mermaid-source");
  if (!pre) return;
  const host = document.createElement("div");
  const title = figure.querySelector("figcaption .title")?.textContent ?? "";
  pre.replaceWith(host);
  mount(host, <Diagram source={sourceText(pre)} kind={pre.dataset["kind"] ?? "other"} title={title} />);
}

/** After the place of an error Mermaid lists the names that its grammar has for all that could have stood there. */
const EXPECTED = /\n?Expecting /;

type Shown = { state: "drawing" } | { state: "drawn"; drawing: Drawing } | { state: "failed"; error: DrawingError };

function Diagram({ source, kind, title }: { source: string; kind: string; title: string }) {
  const t = words();
  const shown = useSignal<Shown>({ state: "drawing" });
  const tab = useSignal<"diagram" | "source">(diagrams.peek() === "drawn" ? "diagram" : "source");
  const fits = useSignal(false);
  const large = useSignal(false);
  const dark = isDark();
  const drawn = useRef(false); // from the first time that somebody wants to see it
  drawn.current ||= tab.value === "diagram";
  const isWanted = drawn.current;
  useEffect(() => {
    let wanted = isWanted;
    if (wanted)
      renderDiagram(source, dark).then(
        (drawing) => {
          if (wanted) shown.value = { state: "drawn", drawing };
        },
        (error: DrawingError) => {
          if (wanted) {
            shown.value = { state: "failed", error };
          }
        },
      );
    return () => void (wanted = false);
  }, [dark, isWanted, shown, source]);
  const now = shown.value;
  const name = title || t.diagram;
  const download = () => {
    if (now.state !== "drawn") return;
    const page = getComputedStyle(document.body);
    downloadText(
      "diagram.svg",
      toSvgFile(buildSvg(now.drawing.tree), page.backgroundColor, page.fontFamily),
      "image/svg+xml",
    );
  };
  return (
    <div class="diagram">
      <div class="diagram-head">
        <Tabs
          label={t.diagramOrSource}
          open={tab.value}
          onOpen={(id) => (tab.value = id)}
          tabs={[
            { id: "diagram", name: t.diagram },
            { id: "source", name: t.source },
          ]}
        />
        <span class="acts">
          <IconButton
            label={t.fit}
            sign="fit"
            pressed={fits.value}
            disabled={now.state !== "drawn"}
            onClick={() => (fits.value = !fits.value)}
          />
          <IconButton
            label={t.large}
            sign="expand"
            disabled={now.state !== "drawn"}
            onClick={() => (large.value = true)}
          />
          <IconButton label={t.downloadSvg} sign="download" disabled={now.state !== "drawn"} onClick={download} />
          <CopyButton label={t.copySource} text={source} />
        </span>
      </div>
      <div
        class={`stage${fits.value ? " fits" : ""}${dark ? " dark" : ""}`}
        style={
          fits.value ? {} : { [now.state === "failed" ? "minHeight" : "height"]: `${stageHeight(kind, source)}px` }
        }
      >
        {tab.value === "source" ? (
          <pre tabIndex={0} aria-label={t.source}>
            {revealHidden(source)}
          </pre>
        ) : now.state === "drawn" ? (
          <Picture drawing={now.drawing} name={name} />
        ) : now.state === "failed" ? (
          <DiagramError error={now.error} source={source} />
        ) : (
          <span class="faint">{t.drawing}</span>
        )}
      </div>
      {large.value && now.state === "drawn" && (
        <Dialog title={name} onClose={() => (large.value = false)} side>
          <div class="stage whole">
            <Picture drawing={now.drawing} name={name} />
          </div>
        </Dialog>
      )}
    </div>
  );
}

function Picture({ drawing: { tree, width }, name }: { drawing: Drawing; name: string }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const svg = buildSvg(tree);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", name);
    svg.style.maxWidth = `${width}px`;
    host.current!.replaceChildren(svg);
  }, [name, tree, width]);
  return <div class="picture" ref={host} />;
}

function DiagramError({ error, source }: { error: DrawingError; source: string }) {
  const t = words();
  const why =
    error.fault === "source"
      ? error.message.split(EXPECTED)[0]!.trim()
      : { slow: t.tooSlow, large: t.tooLarge, frame: t.noFrame }[error.fault];
  return (
    <div class="failed">
      <p class="card warning" role="note">
        <strong>{t.diagramFailed}</strong>
        <span class="why">{revealHidden(why)}</span>
      </p>
      <pre tabIndex={0} aria-label={t.source}>
        {revealHidden(source)}
      </pre>
    </div>
  );
}

/** About as high as such a diagram becomes. */
function stageHeight(kind: string, source: string): number {
  const lines = source.split("\n").filter((line) => line.trim()).length;
  const between = (low: number, wanted: number, high: number) => Math.round(Math.max(low, Math.min(high, wanted)));
  if (/^(flowchart|graph)$/.test(kind))
    return /^\s*(?:flowchart|graph)\s+(?:LR|RL)/m.test(source)
      ? between(170, 110 + 14 * lines, 360)
      : between(220, 40 + 44 * lines, 460);
  if (kind === "sequencediagram") return between(220, 90 + 34 * lines, 480);
  if (kind === "gantt") return between(180, 70 + 24 * lines, 460);
  if (/^(gitgraph|timeline|journey)$/.test(kind)) return 260;
  return 340;
}
