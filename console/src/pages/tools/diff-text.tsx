/** A unified diff as text, each line in the colour of what it says. */
import { revealHidden } from "../../lib/hidden-characters";
import { CopyButton } from "../../ui/button";

export function DiffText({ text, label }: { text: string; label: string }) {
  const kind = (line: string) =>
    /^(\+\+\+|---|@@)/.test(line) ? "head" : line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "";
  return (
    <div class="code">
      <div class="code-head">
        <span class="faint cut" title={label}>
          {label}
        </span>
        <CopyButton text={text} />
      </div>
      <pre class="tools-diff" tabIndex={0} aria-label={label}>
        {text
          .replace(/\n$/, "")
          .split("\n")
          .map((line, n) => (
            <span key={n} class={kind(line)}>
              {revealHidden(line) || " "}
            </span>
          ))}
      </pre>
    </div>
  );
}
