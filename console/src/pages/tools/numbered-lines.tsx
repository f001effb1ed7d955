/** A text with the numbers of its lines; nothing in it is hidden. A line may have notes below it. */
import type { ComponentChildren } from "preact";
import { revealHidden } from "../../lib/hidden-characters";
import { CopyButton } from "../../ui/button";
import { pluginWords } from "./words-plugin";

/** More lines than people read; the rest is only counted. */
const MOST = 3000;

export interface LineNotes {
  tone: "bad" | "warn";
  notes: ComponentChildren[];
}

export function NumberedLines({
  text,
  name,
  label,
  notesOf,
}: {
  text: string;
  name: string;
  label: string;
  notesOf?: (line: number) => LineNotes | null;
}) {
  const t = pluginWords();
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <div class="code tools-lines">
      <div class="code-head">
        <span class="faint cut" title={name} data-given>
          {revealHidden(name)}
        </span>
        <CopyButton text={text} />
      </div>
      <div class="tools-lines-body" tabIndex={0} role="region" aria-label={label}>
        {lines.slice(0, MOST).map((line, n) => {
          const noted = notesOf?.(n + 1);
          return (
            <div key={n} class={`tools-line ${noted?.tone ?? ""}`}>
              <span class="tools-no" aria-hidden="true">
                {n + 1}
              </span>
              <span class="tools-line-text" data-given>
                {revealHidden(line) || " "}
              </span>
              {noted?.notes.map((note, m) => (
                <span key={m} class="tools-line-note">
                  {note}
                </span>
              ))}
            </div>
          );
        })}
        {lines.length > MOST && <p class="faint">{t.rest(lines.length - MOST)}</p>}
      </div>
    </div>
  );
}
