/** Imports conversations from files: each becomes a new one, and the last is opened. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { api, ApiError } from "../../lib/api";
import { navigate } from "../../lib/router";
import { showToast } from "../../lib/toast";
import { IconButton } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { ErrorText } from "../../ui/state";
import { FileError } from "./file-error";
import { newId } from "./model";
import { threadWords } from "./words-thread";

const MOST = 8 * 2 ** 20; // bytes; the server stores no larger one

export function ImportButton({ onImported }: { onImported?: () => void }) {
  const t = threadWords();
  const input = useRef<HTMLInputElement>(null);
  const problems = useSignal<readonly { file: string; why: ComponentChildren }[]>([]);
  const take = async (files: readonly File[]) => {
    let last = "";
    for (const file of files)
      try {
        last = await importConversation(file);
      } catch (error) {
        problems.value = [...problems.value, { file: file.name, why: explain(error) }];
      }
    if (!last) return;
    showToast(t.imported);
    navigate(`/chat/${last}`);
    onImported?.();
  };
  return (
    <>
      <IconButton label={t.importFile} sign="upload" kind="plain" onClick={() => input.current?.click()} />
      <input
        ref={input}
        type="file"
        class="hush"
        accept=".json,.md,.markdown,application/json,text/markdown"
        multiple
        hidden
        data-import
        onChange={(event) => {
          const files = [...(event.currentTarget.files ?? [])];
          event.currentTarget.value = "";
          void take(files);
        }}
      />
      {problems.value.length > 0 && (
        <Dialog title={t.importFile} onClose={() => (problems.value = [])}>
          {problems.value.map(({ file, why }, at) => (
            <div key={at} role="alert">
              <strong data-given>{t.importFailed(file)}</strong>
              <br />
              {why}
            </div>
          ))}
        </Dialog>
      )}
    </>
  );
}

async function importConversation(file: File): Promise<string> {
  if (file.size > MOST) throw new ApiError("", 413, "", "");
  const { readConversation } = await import("./conversation-file");
  const conversation = readConversation(await file.text());
  const first =
    conversation.messages
      .find((one) => one.role === "user")
      ?.text.trim()
      .split("\n")[0] ?? "";
  const title =
    conversation.title || first.slice(0, 60) || file.name.replace(/\.(?:json|md|markdown)$/i, "").slice(0, 200);
  const id = newId();
  await api(`/v1/conversations/${id}`, { method: "PUT", body: { ...conversation, title, version: 0 } });
  return id;
}

function explain(error: unknown): ComponentChildren {
  const t = threadWords();
  if (error instanceof FileError) {
    const text = t[error.why];
    return typeof text === "string" ? text : text(error.at);
  }
  if (error instanceof ApiError) return error.status === 413 ? t.tooLarge : <ErrorText error={error} />;
  throw error;
}
