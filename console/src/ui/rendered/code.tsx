/** Code blocks: what language, wrapped or not, copied and saved as the very characters that were written. */
import { useSignal } from "@preact/signals";
import { CopyButton, IconButton } from "../button";
import { sourceText, downloadText } from "./source-text";
import { mount } from "./mount";
import { words } from "./words";

const ENDINGS: Record<string, string> = {
  python: "py",
  javascript: "js",
  typescript: "ts",
  bash: "sh",
  rust: "rs",
  ruby: "rb",
  markdown: "md",
  csharp: "cs",
  kotlin: "kt",
  yaml: "yml",
  powershell: "ps1",
  haskell: "hs",
  docker: "Dockerfile",
  "objective-c": "m",
  latex: "tex",
  perl: "pl",
  make: "mk",
};
const PLAIN = new Set(
  (
    "awk bat c clojure cmake cpp css dart diff go graphql groovy html ini java json jsx julia less " +
    "lua matlab nim php r scala scss solidity sql swift toml tsx vim xml zig"
  ).split(" "),
);
let wrapped = false; // the last choice holds for the blocks to come

export function drawCode(figure: HTMLElement): void {
  const pre = figure.querySelector("pre");
  if (!pre) return;
  const caption =
    figure.querySelector("figcaption") ?? figure.insertBefore(document.createElement("figcaption"), figure.firstChild);
  const shown = caption.querySelector(".language")?.textContent ?? "";
  if (!caption.childNodes.length) {
    const label = document.createElement("span");
    label.className = "language";
    label.textContent = words().text;
    caption.append(label);
  }
  pre.tabIndex = 0;
  pre.setAttribute("aria-label", shown || words().code);
  figure.classList.toggle("wrap", wrapped);
  const known = /language-([a-z-]+)/.exec(pre.querySelector("code")?.className ?? "")?.[1] ?? "";
  const host = caption.appendChild(document.createElement("span"));
  host.className = "acts";
  mount(
    host,
    <CodeActions
      figure={figure}
      source={() => sourceText(pre)}
      ending={ENDINGS[known] ?? (PLAIN.has(known) ? known : "txt")}
    />,
  );
}

function CodeActions({ figure, source, ending }: { figure: HTMLElement; source: () => string; ending: string }) {
  const on = useSignal(wrapped);
  const t = words();
  const toggle = () => {
    on.value = wrapped = !on.value;
    figure.classList.toggle("wrap", on.value);
  };
  return (
    <>
      <IconButton label={t.wrap} sign="wrap" pressed={on.value} onClick={toggle} />
      <IconButton label={t.download} sign="download" onClick={() => downloadText(`code.${ending}`, source())} />
      <CopyButton label={t.copyCode} text={source} />
    </>
  );
}
