/** The changes of a call, line by line or as full files, and undo while the files are unchanged. */
import "./style.css";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { api } from "../../lib/api";
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
import { callPath, type CallDetail } from "./types";
import { FullFiles } from "./full-files";
import { activityWords as words } from "./words";

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
  const t = words();
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
            <Chip>{t.atUndone}</Chip>
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
