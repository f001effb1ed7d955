/** Changed files, hunk by hunk as `structuredPatch` has them: unified or (where there is room) side by side. */
import "./patch/patch.css";
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { isNarrow } from "../lib/narrow";
import { revealHidden } from "../lib/hidden-characters";
import { CopyButton } from "./button";
import { Chip } from "./chip";
import { Icon } from "./icon";
import { Block, BLOCK } from "./patch/block";
import { countLines, splitRows, unifiedRows, type Count, type PatchFile } from "./patch/model";
import { patchWords as words } from "./patch/words";

export type { PatchFile } from "./patch/model";
export { filesFrom, filesOf } from "./patch/files";

const STORED = "toolyard.patch";
// One choice for every patch of the console: who reads side by side reads all so.
const sideBySide = signal(localStorage.getItem(STORED) === "split");
const spaces = signal(false);

export function Patch({ files }: { files: readonly PatchFile[] }) {
  const t = words();
  const total = useMemo(
    () =>
      files
        .map((file) => countLines(file.hunks))
        .reduce((all, one) => ({ added: all.added + one.added, removed: all.removed + one.removed }), {
          added: 0,
          removed: 0,
        }),
    [files],
  );
  const choose = (on: boolean) => {
    sideBySide.value = on;
    localStorage.setItem(STORED, on ? "split" : "unified");
  };
  return (
    <div class="patch">
      <div class="patch-bar">
        <span class="quiet">{t.files(files.length)}</span>
        <Counts {...total} />
        <span class="grow" />
        {!isNarrow.value && (
          <div class="patch-choice" role="group" aria-label={t.layout}>
            <button type="button" aria-pressed={!sideBySide.value} onClick={() => choose(false)}>
              {t.unified}
            </button>
            <button type="button" aria-pressed={sideBySide.value} onClick={() => choose(true)}>
              {t.split}
            </button>
          </div>
        )}
        <div class="patch-choice">
          <button type="button" aria-pressed={spaces.value} onClick={() => (spaces.value = !spaces.value)}>
            {t.whitespace}
          </button>
        </div>
      </div>
      {files.map((file, at) => (
        <File key={`${at} ${file.path}`} file={file} split={sideBySide.value && !isNarrow.value} />
      ))}
    </div>
  );
}

function Counts({ added, removed }: Count) {
  const t = words();
  return (
    <span class="patch-counts tabular">
      <span class="patch-plus" aria-hidden="true">
        +{added}
      </span>
      <span class="hush">{t.added(added)}</span>{" "}
      <span class="patch-minus" aria-hidden="true">
        −{removed}
      </span>
      <span class="hush">{t.removed(removed)}</span>
    </span>
  );
}

function File({ file, split: halves }: { file: PatchFile; split: boolean }) {
  const t = words();
  const crlf = useMemo(() => file.hunks.some((hunk) => hunk.lines.some((line) => line.endsWith("\r"))), [file]);
  const operation = (t as unknown as Record<string, string>)[file.operation ?? ""] ?? "";
  return (
    <details class="patch-file" open>
      <summary>
        <Icon sign="right" size={14} />
        <span class="patch-path mono" data-given>
          {revealHidden(file.path)}
        </span>
        {operation && (
          <Chip tone={file.operation === "delete" ? "bad" : file.operation === "create" ? "good" : "plain"}>
            {operation}
          </Chip>
        )}
        {file.from && (
          <span class="faint mono" data-given>
            {t.from(revealHidden(file.from))}
          </span>
        )}
        {crlf && <Chip title={t.crlfTitle}>{t.crlf}</Chip>}
        <span class="grow" />
        <Counts {...countLines(file.hunks)} />
      </summary>
      <div class="patch-copy">
        <CopyButton text={file.path} label={t.copyPath} />
      </div>
      {file.binary ? (
        <p class="patch-note">{t.binary}</p>
      ) : file.hunks.length ? (
        <Lines file={file} split={halves} />
      ) : (
        <p class="patch-note">{t.same}</p>
      )}
    </details>
  );
}

function Lines({ file, split: halves }: { file: PatchFile; split: boolean }) {
  const t = words();
  const rows = useMemo(() => (halves ? splitRows(file.hunks) : unifiedRows(file.hunks)), [file, halves]);
  const blocks = Array.from({ length: Math.ceil(rows.length / BLOCK) }, (_, at) => at * BLOCK);
  return (
    <table
      class={halves ? "patch-lines patch-split" : "patch-lines"}
      aria-label={`${t.changes}: ${file.path}`}
      aria-rowcount={rows.length + 1}
    >
      <thead>
        <tr aria-rowindex={1}>
          <th scope="col" class="patch-number">
            <span class="hush">{t.oldLine}</span>
          </th>
          {halves && (
            <th scope="col">
              <span class="hush">{t.oldText}</span>
            </th>
          )}
          <th scope="col" class="patch-number">
            <span class="hush">{t.newLine}</span>
          </th>
          {!halves && (
            <th scope="col" class="patch-sign">
              <span class="hush">{t.sign}</span>
            </th>
          )}
          <th scope="col">
            <span class="hush">{halves ? t.newText : t.text}</span>
          </th>
        </tr>
      </thead>
      {blocks.map((first) => (
        <Block
          key={`${halves} ${first}`}
          rows={rows.slice(first, first + BLOCK)}
          first={first}
          split={halves}
          spaces={spaces.value}
          shown={rows.length <= 2 * BLOCK}
        />
      ))}
    </table>
  );
}
