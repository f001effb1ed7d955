/** The changes of a call, line by line or as full files, and undo while the files are unchanged. */
import "./style.css";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { CallDetail } from "toolyard-client";
import { api } from "../../lib/api";
import { dictionary, plural } from "../../lib/language";
import { setQuery, queryParam } from "../../lib/router";
import { showToast } from "../../lib/toast";
import { revealHidden } from "../../lib/hidden-characters";
import { callerName } from "../../lib/caller";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Dialog } from "../../ui/dialog";
import { Patch, type PatchFile } from "../../ui/patch";
import { Fault } from "../../ui/state";
import { Ago } from "../../ui/time";
import { callPath } from "./types";
import { FullFiles } from "./full-files";
import { activityWords as words } from "./words";

const undoWords = dictionary(
  {
    undo: "Undo these changes",
    undoAsk: "Restore the files to their state before this call?",
    undoAskDelete: (n: number) =>
      plural(n, {
        one: "Delete the file that this call created?",
        other: "Delete the # files that this call created?",
      }),
    willGo: "will be deleted",
    undone: (restored: number, deleted: number) =>
      [
        restored ? plural(restored, { one: "# file restored.", other: "# files restored." }) : "",
        deleted ? plural(deleted, { one: "# new file deleted.", other: "# new files deleted." }) : "",
      ]
        .filter(Boolean)
        .join(" ") || "Undone.",
    undoNo: "Cannot be undone: the files have changed since, or their old content is no longer stored.",
    undoFailed: "Undo failed",
    isUndone: "Undone",
    cancel: "Cancel",
  },
  {
    undo: "撤销这些更改",
    undoAsk: "将文件恢复到这次调用之前的状态？",
    undoAskDelete: (n: number) => plural(n, { other: "删除这次调用新建的 # 个文件？" }),
    willGo: "将被删除",
    undone: (restored: number, deleted: number) =>
      [
        restored ? plural(restored, { other: "已恢复 # 个文件。" }) : "",
        deleted ? plural(deleted, { other: "已删除 # 个新建的文件。" }) : "",
      ].join("") || "已撤销。",
    undoNo: "无法撤销：文件之后又被修改，或原内容已不再保留。",
    undoFailed: "撤销失败",
    isUndone: "已撤销",
    cancel: "取消",
  },
);

interface Given {
  call: Pick<CallDetail, "id" | "undoable" | "undone">;
  files: readonly PatchFile[];
  onUndone: () => void;
}

export function Changes({ call, files, onUndone }: Given) {
  const t = words();
  const showsFullFiles = queryParam("view") === "files";
  return (
    <div class="stack">
      <Undo call={call} files={files} onUndone={onUndone}>
        <span class="grow" />
        <Button
          kind="quiet"
          sign="file"
          pressed={showsFullFiles}
          onClick={() => setQuery({ view: showsFullFiles ? null : "files" })}
        >
          {t.fullFiles}
        </Button>
      </Undo>
      {showsFullFiles ? <FullFiles id={call.id} /> : <Patch files={files} />}
    </div>
  );
}

/** One press and one question take back what a call did to files; or what has become of that. `files` may be none: a
 * moved or deleted file has no lines to show. */
export function Undo({ call, files, onUndone, children }: Given & { children?: ComponentChildren }) {
  const t = undoWords();
  const asking = useSignal(false);
  const fault = useSignal<Error | null>(null);
  const undo = async () => {
    const { restored, deleted } = await api<{ restored: string[]; deleted: string[] }>(`${callPath(call.id)}/undo`, {
      method: "POST",
    });
    showToast(t.undone(restored.length, deleted.length));
    asking.value = false;
    fault.value = null;
    onUndone();
  };
  const close = () => (asking.value = false);
  const isCreated = (file: PatchFile) => file.operation === "create";
  return (
    <>
      <div class="row">
        {call.undone ? (
          <span class="act-undone">
            <Chip>{t.isUndone}</Chip>
            <Ago at={call.undone.at} />
            <span class="faint" data-given>
              {revealHidden(callerName(call.undone.by))}
            </span>
          </span>
        ) : (
          <Button sign="undo" disabled={call.undoable === false} onClick={() => void (asking.value = true)}>
            {t.undo}
          </Button>
        )}
        {!call.undone && call.undoable === false && <span class="faint">{t.undoNo}</span>}
        {children}
      </div>
      {fault.value && <Fault title={t.undoFailed} error={fault.value} />}
      {asking.value && (
        <Dialog
          title={t.undo}
          onClose={close}
          footer={
            <>
              <Button onClick={() => void close()}>{t.cancel}</Button>
              <Button
                kind="primary"
                onFault={(error) => {
                  fault.value = error as Error;
                  close();
                }}
                onClick={undo}
              >
                {t.undo}
              </Button>
            </>
          }
        >
          <p>{files.length > 0 && files.every(isCreated) ? t.undoAskDelete(files.length) : t.undoAsk}</p>
          <ul class="act-files mono">
            {files.map((file) => (
              <li key={file.path}>
                <span data-given>{revealHidden(file.path)}</span>{" "}
                {isCreated(file) && <Chip tone="bad">{t.willGo}</Chip>}
              </li>
            ))}
          </ul>
        </Dialog>
      )}
    </>
  );
}
