/** Text as it is, in a box: copied exactly, shown with nothing hidden. */
import { formatJson, revealHidden } from "../lib/hidden-characters";
import { CopyButton } from "./button";

export function Code({ text, label, tall = false }: { text: string; label?: string; tall?: boolean }) {
  return (
    <div class={`code${tall ? " tall" : ""}`}>
      <div class="code-head">
        <span class="faint cut" title={label}>
          {label}
        </span>
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} aria-label={label}>
        {revealHidden(text)}
      </pre>
    </div>
  );
}

export function Json({ value, label }: { value: unknown; label?: string }) {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  return (
    <div class="code">
      <div class="code-head">
        <span class="faint cut" title={label}>
          {label}
        </span>
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} aria-label={label}>
        {formatJson(value)}
      </pre>
    </div>
  );
}
