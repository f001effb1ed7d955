/** The files of a plugin under review. Each opens in place: as text with line numbers, or, if it has changed since the
 * plugin was allowed, as the difference. What is not text shows its size and its hash. */
import { useSignal } from "@preact/signals";
import type { PluginFileContent, PluginFileRow } from "toolyard-client";
import { withQuery } from "../../lib/api";
import { formatBytes } from "../../lib/clock";
import { hasHidden, revealHidden } from "../../lib/hidden-characters";
import { useResource } from "../../lib/resource";
import { Button, CopyButton } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Icon } from "../../ui/icon";
import { Patch } from "../../ui/patch";
import { Fault, Loading, Notice } from "../../ui/state";
import { NumberedLines } from "./numbered-lines";
import { pluginWords } from "./words-plugin";

/** So many changed files are open from the start: what changed is what the decision is about. */
const MOST_OPEN = 10;

/** `base` is the address of the plugin or of the staged one, `folder` tells it apart from others of its name. */
export function ReviewFiles({ base, folder = "" }: { base: string; folder?: string }) {
  const t = pluginWords();
  const list = useResource<{ data: PluginFileRow[]; left_out: number }>(withQuery(`${base}/files`, { folder }));
  if (!list.value)
    return list.state === "fault" ? <Fault error={list.error} retry={list.reload} /> : <Loading rows={3} />;
  const files = list.value.data;
  const changed = changedPaths(files).length;
  const opened = new Set(changedPaths(files).slice(0, MOST_OPEN));
  return (
    <section class="tools-review-files" aria-label={t.files}>
      <h3>
        {t.filesTitle(files.length)}
        {changed > 0 && <Chip tone="warn">{t.filesChanged(changed)}</Chip>}
      </h3>
      <ul>
        {files.map((file) => (
          <FileRow
            key={file.path}
            file={file}
            isOpen={opened.has(file.path)}
            path={withQuery(`${base}/file`, { folder, path: file.path })}
          />
        ))}
      </ul>
      {list.value.left_out > 0 && <p class="faint">{t.filesLeftOut(list.value.left_out)}</p>}
    </section>
  );
}

function changedPaths(files: readonly PluginFileRow[]): string[] {
  return files.filter((file) => file.change !== "none").map((file) => file.path);
}

function FileRow({ file, path, isOpen }: { file: PluginFileRow; path: string; isOpen: boolean }) {
  const t = pluginWords();
  const open = useSignal(isOpen);
  const kinds = { text: "", binary: t.fileBinary, large: t.fileLarge, link: t.fileLink, gone: "" };
  return (
    <li>
      <button type="button" class="tools-file" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
        <Icon sign={open.value ? "down" : "right"} size={14} />
        <span class="mono cut" title={file.path} data-given>
          {revealHidden(file.path)}
        </span>
        {file.change !== "none" && <ChangeChip change={file.change} />}
        <span class="grow" />
        {!file.counts && <span class="faint tools-wide">{t.fileUncounted}</span>}
        {kinds[file.kind] && <span class="faint">{kinds[file.kind]}</span>}
        <span class="faint tabular">{file.kind === "gone" || file.kind === "link" ? "" : formatBytes(file.size)}</span>
      </button>
      {open.value && <FileView path={path} />}
    </li>
  );
}

function ChangeChip({ change }: { change: "added" | "changed" | "removed" }) {
  const t = pluginWords();
  const [tone, word] = {
    added: ["good", t.fileAdded] as const,
    changed: ["warn", t.fileChanged] as const,
    removed: ["bad", t.fileRemoved] as const,
  }[change];
  return <Chip tone={tone}>{word}</Chip>;
}

function FileView({ path }: { path: string }) {
  const t = pluginWords();
  const content = useResource<PluginFileContent>(path);
  const whole = useSignal(false);
  const file = content.value;
  if (!file)
    return content.state === "fault" ? <Fault error={content.error} retry={content.reload} /> : <Loading rows={4} />;
  const patch = file.structured_patch;
  const showsPatch = patch !== null && !whole.value;
  return (
    <div class="tools-file-view">
      {file.text !== null && hasHidden(file.text) && <Notice tone="warn">{t.hidden}</Notice>}
      {file.change === "changed" && !patch && <Notice>{t.noOldText}</Notice>}
      {patch && file.text !== null && (
        <div>
          <Button kind="quiet" sign="file" pressed={whole.value} onClick={() => void (whole.value = !whole.value)}>
            {t.wholeFile}
          </Button>
        </div>
      )}
      {showsPatch ? (
        <Patch files={[{ path: file.path, hunks: patch }]} />
      ) : file.text !== null ? (
        <NumberedLines text={file.text} name={file.path} label={t.fileText} />
      ) : (
        file.kind !== "gone" && <p class="quiet">{file.kind === "link" ? t.linkText : t.notShown}</p>
      )}
      {file.sha256 && (
        <p class="row tools-print faint">
          SHA-256 <code data-given>{file.sha256}</code>
          <CopyButton text={file.sha256} />
        </p>
      )}
    </div>
  );
}
